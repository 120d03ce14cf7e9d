"""Control frames from receivers: accepted within bounds, otherwise counted and dropped."""

import struct

import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, SESSION_ID, SLOT, SND_POS, STREAM_ID
from tests.unit.driver.media_driver.sending_rig import RECEIVER_ID, SendingRig, kinds
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import network_publication, sender_state

TERM = 65_536
EOS, SEND_SETUP, REPLY = 0x40, 0x80, 0x80
COUNTED = {
    "invalid": system_counters.INVALID_PACKETS,
    "status": system_counters.STATUS_MESSAGES_RECEIVED,
    "rejected": system_counters.STATUS_MESSAGES_REJECTED,
    "naks": system_counters.NAKS_RECEIVED,
    "errors": system_counters.ERROR_FRAMES_RECEIVED,
}


@pytest.fixture
def rig(tmp_path):
    return SendingRig(tmp_path)


def deliver(rig, datagram):
    """Deliver a datagram. Returns the counters that changed, and by how much."""
    before = {name: rig.value(counter_id) for name, counter_id in COUNTED.items()}
    rig.deliver(datagram)
    rig.turn(1 * MS)
    rig.turn(200 * MS)
    added = {name: rig.value(COUNTED[name]) - before[name] for name in COUNTED}
    return {name: count for name, count in added.items() if count}


def status(offset=0, window=4096, term_id=7, stream_id=STREAM_ID, flags=0, version=0):
    return wire.pack(
        "status_message",
        36,
        version,
        flags,
        wire.SM,
        SESSION_ID,
        stream_id,
        term_id,
        offset,
        window,
        RECEIVER_ID,
    )


def test_a_status_message_connects_and_moves_the_limit(rig):
    rig.start(window=4096)
    assert rig.positions == (0, 4096)
    assert rig.is_connected()
    assert network_publication.has_receivers_acquire(rig.state.words, SLOT) == 1
    assert rig.state.endpoints[0].last_status_ns > 0


def test_a_status_message_that_waits_at_a_new_socket_finds_its_publication(rig):
    rig.deliver_status(0, 4096)
    rig.turn()
    assert rig.positions == (0, 4096)


def test_the_limit_never_moves_back(rig):
    rig.start(window=8192)
    rig.deliver_status(0, 4096)
    rig.turn()
    assert rig.positions == (0, 8192)


@pytest.mark.parametrize(
    ("distance", "is_taken"),
    [(TERM // 2, True), (TERM // 2 + 32, False), (-TERM // 2, True), (-TERM // 2 - 32, False)],
)
def test_an_implausible_position_is_rejected_and_changes_nothing(rig, distance, is_taken):
    rig.start()
    rig.fill_to(TERM)
    limit, heard_ns = rig.positions[1], int(rig.state.endpoints[0].last_status_ns)
    term_id, offset = rig.place(TERM + distance)
    added = deliver(rig, status(offset, 32, term_id))
    assert added == ({"status": 1} if is_taken else {"status": 1, "rejected": 1})
    moved = max(limit, TERM + distance + 32) if is_taken else limit
    assert rig.positions[1] == moved
    assert (int(rig.state.endpoints[0].last_status_ns) > heard_ns) == is_taken


@pytest.mark.parametrize(
    ("fields", "added"),
    [
        ({"offset": TERM - 32, "window": 0, "term_id": 6}, {"status": 1}),
        ({"offset": TERM}, {"invalid": 1}),
        ({"offset": -32}, {"invalid": 1}),
        ({"offset": 8}, {"invalid": 1}),
        ({"window": TERM // 2}, {"status": 1}),
        ({"window": TERM // 2 + 1}, {"invalid": 1}),
        ({"window": -1}, {"invalid": 1}),
        ({"version": 1}, {"invalid": 1}),
        ({"stream_id": 5, "offset": TERM, "window": TERM}, {"status": 1}),
        ({"stream_id": 5, "offset": 1 << 30}, {"invalid": 1}),
        ({"flags": SEND_SETUP, "offset": TERM}, {"invalid": 1}),
    ],
)
def test_a_status_message_is_checked_against_its_term(rig, fields, added):
    rig.start()
    assert deliver(rig, status(**fields)) == added


@pytest.mark.parametrize(
    ("offset", "length", "added"),
    [
        (0, 32, {"naks": 1}),
        (0, 0, {"naks": 1}),
        (TERM - 32, 32, {"naks": 1}),
        (TERM - 32, 64, {"invalid": 1}),
        (TERM, 0, {"invalid": 1}),
        (-32, 32, {"invalid": 1}),
        (8, 32, {"invalid": 1}),
        (0, -1, {"invalid": 1}),
    ],
)
def test_a_nak_is_checked_against_its_term(rig, offset, length, added):
    rig.start()
    nak = wire.pack("nak", 28, 0, 0, wire.NAK, SESSION_ID, STREAM_ID, 7, offset, length)
    assert deliver(rig, nak) == added


def test_a_nak_for_an_unknown_stream_is_not_counted(rig):
    rig.start()
    nak = wire.pack("nak", 28, 0, 0, wire.NAK, SESSION_ID, 5, 7, TERM, 32)
    assert deliver(rig, nak) == {}


@pytest.mark.parametrize(
    ("frame_length", "text_length", "added"),
    [
        (44, 4, {"errors": 1}),
        (43, 4, {"invalid": 1}),
        (44, -1, {"invalid": 1}),
        (48, 4, {"invalid": 1}),
    ],
)
def test_an_error_frame_is_counted_if_its_text_is_inside_it(rig, frame_length, text_length, added):
    rig.start()
    head = wire.pack(
        "error", frame_length, 0, 0, wire.ERR, SESSION_ID, STREAM_ID, 1, 0, 13, text_length
    )
    assert deliver(rig, head + b"text") == added


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        struct.pack("<iBBH", 8, 0, 0, 9),
        struct.pack("<iBBH", -1, 0, 0, 3),
        status()[:35],
        status() + b"",
        struct.pack("<iBBH", 44, 0, 0, 3) + bytes(28),
    ],
)
def test_a_malformed_datagram_is_only_counted_as_invalid(rig, datagram):
    rig.start()
    before = rig.positions
    expected = {"status": 1} if datagram == status() else {"invalid": 1}
    assert deliver(rig, datagram) == expected
    assert rig.positions == before


@pytest.mark.parametrize(
    "datagram",
    [
        wire.pack("data", 32, 0, 0xC0, wire.DATA, 0, SESSION_ID, STREAM_ID, 7, 0),
        wire.pack("setup", 40, 0, 0, wire.SETUP, 0, SESSION_ID, STREAM_ID, 7, 7, TERM, 1408, 0),
    ],
)
def test_a_frame_for_a_receiver_is_ignored(rig, datagram):
    rig.start()
    assert deliver(rig, datagram) == {}


def test_silent_receivers_are_removed(rig):
    rig.start()
    rig.turn(4_999 * MS)
    assert rig.is_connected()
    rig.turn(1 * MS)
    assert not rig.is_connected()
    assert network_publication.has_receivers_acquire(rig.state.words, SLOT) == 0
    assert kinds(rig.turn(100 * MS)) == ["heartbeat"]
    rig.deliver_status(0, 4096)
    rig.turn()
    assert rig.is_connected()


def test_a_receiver_that_reports_the_end_is_removed_at_once(rig):
    rig.start()
    rig.deliver_status(0, 32_768, receiver_id=5)
    rig.turn()
    rig.deliver_status(0, 32_768, flags=EOS)
    rig.turn()
    assert rig.is_connected()
    rig.deliver_status(0, 32_768, flags=EOS, receiver_id=5)
    rig.turn()
    assert not rig.is_connected()
    assert network_publication.has_unicast_eos_acquire(rig.state.words, SLOT) == 1


def test_a_receiver_that_returns_cancels_the_end_reported_before(rig):
    """Otherwise a publication that ends later would not linger to repair its last loss."""
    rig.start()
    rig.deliver_status(0, 32_768, flags=EOS)
    rig.turn()
    rig.deliver_status(0, 32_768, receiver_id=5)
    rig.turn()
    assert network_publication.has_unicast_eos_acquire(rig.state.words, SLOT) == 0


@pytest.mark.parametrize(("flags", "is_answered"), [(REPLY, True), (0, False)])
def test_an_rtt_request_is_echoed_unchanged(rig, flags, is_answered):
    rig.start()
    rig.deliver(
        wire.pack("rtt_measurement", 40, 0, flags, wire.RTTM, SESSION_ID, STREAM_ID, 12345, 0, 99)
    )
    replies = [item for item in rig.turn() + rig.turn() if kinds([item]) == ["rttm"]]
    expected = wire.pack(
        "rtt_measurement", 40, 0, 0, wire.RTTM, SESSION_ID, STREAM_ID, 12345, 0, 99
    )
    assert replies == ([expected] if is_answered else [])


def test_a_busy_sender_still_polls_control_frames(rig):
    rig.start()
    rig.offer(*[1300] * 40)
    rig.deliver_nak(0, 1344)
    turns = 0
    while rig.value(system_counters.NAKS_RECEIVED) == 0:
        assert rig.turn() != []
        turns += 1
    assert 1 <= turns <= rig.state.agent[0].poll_ratio


def test_a_removed_endpoint_is_not_polled_and_an_ended_publication_is_marked(rig):
    rig.start()
    assert rig.value(SND_POS) == 0
    rig.command(sender_state.END_PUBLICATION, SLOT, 0)
    rig.turn()
    assert rig.record.is_end_of_stream == 1
    rig.command(sender_state.REMOVE_ENDPOINT, 0)
    rig.turn()
    rig.deliver(status())
    rig.turn()
    rig.turn()
    assert rig.value(system_counters.STATUS_MESSAGES_RECEIVED) == 1
