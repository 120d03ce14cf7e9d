"""One thread reads or writes while another closes: no call fails or accesses unmapped memory."""

import threading

import numpy as np
import pytest

from tests.unit.driver.client.compiled_handlers import count_bytes
from tests.unit.driver.client.own_stream import MTU, OwnStream
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.logbuffer import publication_result as result

ROUNDS = 15


def readers(image):
    batch, state = FragmentBatch(64, MTU), np.zeros(5, np.int64)

    def poll_batch():
        batch.clear()
        return image.poll_batch(batch)

    return {
        "poll": lambda: image.poll(lambda payload, header: bytes(payload)),
        "controlled": lambda: image.controlled_poll(lambda payload, header: None),
        "kernel": lambda: image.poll_kernel(count_bytes, state),
        "batch": poll_batch,
        "block": lambda: image.block_poll(lambda *block: bytes(block[0]), 4096),
        "raw": lambda: image.raw_poll(lambda *block: block[2], 4096),
        "peek": lambda: image.controlled_peek(image.position, lambda payload, header: None),
        "facts": lambda: (image.end_of_stream_position, image.is_publication_revoked),
    }


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("way", list(readers(None)))
def test_an_image_may_close_at_any_time_during_a_poll(tmp_path, way):
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        stream = OwnStream(folder)
        stream.write(*[bytes(100)] * 50)
        poll, failures, begun = readers(stream.image)[way], [], threading.Event()

        def work(poll=poll, failures=failures, begun=begun, image=stream.image):
            try:
                while not image.is_closed:
                    poll()
                    begun.set()
                poll()
            except Exception as error:
                failures.append(error)
                begun.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(60)
        stream.image.on_unavailable()
        stream.publication.on_client_closed("test")
        stream.mapped.close()
        thread.join(60)
        assert not thread.is_alive()
        assert failures == []


def claimed(publication):
    claim = publication.try_claim(10)
    return claim if isinstance(claim, int) else claim.commit()


@pytest.mark.parametrize("way", ["offer", "supplied", "parts", "batch", "claim", "padding"])
def test_a_publication_may_close_at_any_time_during_an_offer(tmp_path, way):
    batch, lengths = np.zeros(64, np.uint8), np.array([32, 32], np.int64)
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        stream = OwnStream(folder)
        publication = stream.publication
        ways = {
            "offer": lambda p=publication: p.offer(bytes(3_000)),
            "supplied": lambda p=publication: p.offer(bytes(3_000), reserved_value=len),
            "parts": lambda p=publication: p.offer_parts([b"1", b"2"]),
            "batch": lambda p=publication: p.offer_batch(batch, lengths)[1],
            "claim": lambda p=publication: claimed(p),
            "padding": lambda p=publication: p.append_padding(10),
        }
        failures, begun = [], threading.Event()

        def work(write=ways[way], failures=failures, begun=begun, publication=publication):
            try:
                while not publication.is_closed:
                    write()
                    begun.set()
                assert write() == result.CLOSED
            except Exception as error:
                failures.append(error)
                begun.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(60)
        publication.on_client_closed("test")
        stream.mapped.close()
        thread.join(60)
        assert not thread.is_alive()
        assert failures == []
