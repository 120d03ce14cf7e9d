"""A short attack with datagrams, and tests that its checks detect errors.

`python -m tests.fuzz` runs the full one.
"""

import numpy as np
import pytest

from tests.fuzz import datagrams, transport
from tests.fuzz.world import MS, world
from tests.naive import wire
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.driver.media import link
from windtunnel.harness.fuzz import mutation
from windtunnel.harness.fuzz.streams import KINDS

COUNT = 500 if JIT_DISABLED else 200_000
UNICAST = tuple(kind for kind in KINDS if kind.name == "unicast")


@pytest.mark.parametrize("count", [COUNT // 4, pytest.param(COUNT, marks=pytest.mark.full)])
def test_mutated_datagrams_harm_no_checked_stream_and_leave_no_resources(tmp_path, count):
    assert datagrams.attack(tmp_path, count, 20261) >= count


@pytest.mark.parametrize("count", [COUNT // 10, pytest.param(COUNT, marks=pytest.mark.full)])
def test_mutated_datagrams_harm_no_checked_stream_with_a_recovery_mode(tmp_path, count):
    assert datagrams.attack(tmp_path, count, 20262, modes=True) >= count


def checked(made):
    """Return one checked stream in the middle of its transfer."""
    made.open_checked(made.connect(), UNICAST)
    for _ in range(40):
        made.turn()
    return made.checked[0]


def forged(stream, number_of_bytes):
    """Return a frame that the stream's receiver must accept as the next one."""
    publication = stream.publication
    position = publication.position
    offset = position % publication.term_length
    term_id = publication.initial_term_id + position // publication.term_length
    return wire.pack(
        "data", number_of_bytes, 0, 0xC0, wire.DATA, offset, stream.session_id, stream.stream_id,
        term_id, 0,
    ) + bytes(number_of_bytes - 32)  # fmt: skip


def test_a_forged_frame_that_a_receiver_accepts_is_found_by_reader_and_guard(tmp_path):
    with world(tmp_path, 3) as made:
        stream = checked(made)
        made.check_streams()
        while stream.publication.position % 65_536 > 60_000:
            made.turn()
        datagram = forged(stream, 128)
        content = np.frombuffer(datagram, np.uint8).copy()
        assert mutation.passes_for_good(content, content.size, made.transport.guarded)
        for index in made.links.mailboxes.is_open.nonzero()[0]:
            name = made.transport.sources[index * transport.REMEMBERED]
            link.deliver(made.links, index, name, 16, content, 0, content.size)
        for _ in range(40):
            made.turn()
        with pytest.raises(AssertionError, match="expected message"):
            made.check_streams()


def test_a_position_that_decreases_is_found(tmp_path):
    with world(tmp_path, 4) as made:
        checked(made)
        made.check_streams()
        (reader,) = [item for item in made.clients[0].counters if item.label.startswith("sub-pos")]
        counters.set_release(made.driver._resources.values, reader.counter_id, 0)
        with pytest.raises(AssertionError, match="went back"):
            made.check_streams()


def test_a_resource_that_is_not_released_is_found(tmp_path):
    with world(tmp_path, 5) as made:
        stream = checked(made)
        before = made.held()
        extra = made.clients[0].add_subscription(
            stream.kind.subscription.format(a=20_900, here="10.0.0.1"), 9
        )
        after = made.held()
        changed = {key for key in before if before[key] != after[key]}
        assert changed == {"counters", "sockets of the receiver", "mailboxes"}
        extra.close()
        made.let_time_out(2_000 * MS)
        assert made.held() == before


def is_accepted(content, length, guarded):
    return bool(mutation.passes_for_good(content, length, guarded))


def test_the_guard_agrees_with_the_reference_implementation():
    rng = np.array([5, 6], np.int64)
    guarded = np.array([[-7, 1001]], np.int64)
    good = wire.pack("data", 64, 0, 0xC0, wire.DATA, 64, -7, 1001, 3, 0) + bytes(32)
    other = np.zeros(mutation.KEPT, np.uint8)
    buf, accepted = np.zeros(mutation.ROOM + 4096, np.uint8), 0
    for _ in range(300 if JIT_DISABLED else 20_000):
        buf[: len(good)] = np.frombuffer(good, np.uint8)
        other[: len(good)] = buf[: len(good)]
        length = int(mutation.spoil(rng, buf, len(good), other, len(good)))
        datagram = buf[:length].tobytes()
        expected = False
        if wire.is_acceptable(datagram) and datagram[6] <= wire.DATA and datagram[7] == 0:
            ids = np.frombuffer(datagram[12:20], "<i4").tolist()
            expected = ids == [-7, 1001] and wire.reach(datagram, mutation.TERM_LENGTH) >= 0
        if length < 8 or datagram[6] in (wire.DATA, wire.PAD):
            assert is_accepted(buf, length, guarded) == expected, datagram[:40].hex()
            accepted += expected
    assert accepted > 5
