"""Messages of the golden sets, offered through the client, result in the golden terms."""

import numpy as np
import pytest

from tests.golden.reader import load_array, message, seen_by
from tests.unit.driver.client.own_stream import StubConductor
from tests.unit.driver.logbuffer.test_golden_logs import PUBLICATION, SETS, assert_same_terms
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer


def emptied(folder, golden):
    """A copy of a golden log before anything was written."""
    log, meta_at = golden.copy(), golden.size - descriptor.METADATA_LENGTH
    log[:meta_at] = 0
    first = int(descriptor.initial_term_id(log, meta_at))
    descriptor.initialise_tails(log, meta_at, first, first, 0)
    path = folder / "golden.logbuffer"
    log.tofile(path)
    return LogBuffer.map(path)


def offers(publication, content):
    """Every kind of offer that can write the message."""
    third = len(content) // 3
    yield lambda: publication.offer(content)
    yield lambda: publication.offer(content.tobytes(), reserved_value=lambda frame: 0)
    yield lambda: publication.offer_parts([content[:third], content[third:]])
    yield lambda: publication.offer_batch(content, np.array([content.size], np.int64))[1]


@pytest.mark.parametrize("golden_set", ["one-message", "clean", "loss-concurrent-mtu8k"])
def test_offers_write_the_golden_bytes(tmp_path, golden_set):
    golden, seen = load_array(golden_set, PUBLICATION), seen_by(golden_set, "pub.txt")
    mapped = emptied(tmp_path, golden)
    values = np.zeros(counters.COUNTER_LENGTH, np.uint8)
    counters.set_release(values, 0, 1 << 60)
    kind = ExclusivePublication if SETS[golden_set]["exclusive"] else Publication
    publication = kind(
        StubConductor(values), mapped, channel="", registration_id=4, original_registration_id=4,
        limit_counter_id=0, channel_status_id=-1,
    )  # fmt: skip
    number, length = 0, publication.term_length
    while publication.position < seen["position"]:
        content = message(number, int(SETS[golden_set]["max"]))
        way = list(offers(publication, content))[number % 4]
        while way() < 0:
            # The term has turned: the driver cleans the one after it in time.
            following = (publication.position // length + 1) % 3 * length
            mapped.log[following : following + length] = 0
        number += 1
    assert publication.position == seen["position"]
    assert_same_terms(mapped.log, golden, seen["position"], seen["termLength"])
    live = mapped.log[mapped.meta_at :], golden[mapped.meta_at :]
    assert np.array_equal(*live)
