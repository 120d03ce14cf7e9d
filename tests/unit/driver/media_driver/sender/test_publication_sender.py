"""What a publication sends and when: SETUP, data, heartbeats and retransmits."""

import random
import struct

import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, NAKS_IN, SESSION_ID, SLOT, SND_BPE, SND_POS, STREAM_ID
from tests.unit.driver.media_driver.sending_rig import SendingRig, kinds, retire
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.media import link
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import sender, sender_state

TERM = 65_536
EOS, REVOKED = 0x20, 0x10


@pytest.fixture
def rig(tmp_path):
    return SendingRig(tmp_path)


def test_setups_are_sent_at_once_and_every_100_ms_until_a_status_message(rig):
    rig.offer(100)
    opening = rig.turn()
    assert kinds(opening) == ["setup"]
    assert rig.turn(99 * MS) == []
    assert rig.turn(1 * MS) == opening
    assert rig.turn(100 * MS) == opening
    rig.deliver_status(0, 4096)
    rig.turn(1 * MS)
    assert kinds(rig.turn(1 * MS)) == ["data"]
    assert "setup" not in kinds([d for _ in range(5) for d in rig.turn(100 * MS)])


def test_a_setup_has_the_sender_position(rig):
    rig.start()
    rig.offer(1000, 1000)
    rig.turn()
    rig.deliver(
        wire.pack("status_message", 36, 0, 0x80, wire.SM, SESSION_ID, STREAM_ID, 0, 0, 0, 5)
    )
    rig.turn(100 * MS)
    (datagram,) = [item for item in rig.turn() if kinds([item]) == ["setup"]]
    assert struct.unpack("<iBBHiiiiiiii", datagram) == (
        40,
        0,
        0,
        wire.SETUP,
        rig.value(SND_POS),
        SESSION_ID,
        STREAM_ID,
        7,
        7,
        TERM,
        1408,
        0,
    )


def test_an_elicited_setup_is_sent_once(rig):
    rig.start()
    rig.turn(100 * MS)
    elicit = wire.pack("status_message", 36, 0, 0x80, wire.SM, SESSION_ID, STREAM_ID, 0, 0, 0, 5)
    rig.deliver(elicit)
    rig.turn()
    assert "setup" in kinds(rig.turn())
    assert "setup" not in kinds([d for _ in range(3) for d in rig.turn(100 * MS)])


def test_an_ended_stream_sends_no_elicited_setup(rig):
    rig.start()
    rig.command(sender_state.END_PUBLICATION, SLOT, 0)
    rig.turn(100 * MS)
    rig.deliver(
        wire.pack("status_message", 36, 0, 0x80, wire.SM, SESSION_ID, STREAM_ID, 0, 0, 0, 5)
    )
    assert "setup" not in kinds([d for _ in range(4) for d in rig.turn(100 * MS)])


def test_heartbeats_are_sent_100_ms_after_the_last_datagram(rig):
    rig.turn()
    rig.turn()
    rig.deliver_status(0, 4096)
    rig.turn()
    assert kinds(rig.turn()) == ["heartbeat"]
    assert rig.turn(99 * MS) == []
    assert kinds(rig.turn(1 * MS)) == ["heartbeat"]
    rig.offer(100)
    assert kinds(rig.turn(50 * MS)) == ["data"]
    assert rig.turn(99 * MS) == []
    assert kinds(rig.turn(1 * MS)) == ["heartbeat"]
    assert rig.value(system_counters.HEARTBEATS_SENT) == 3


def revoke(rig):
    """Revoke the stream in its log, as a publisher does."""
    descriptor.put_is_publication_revoked_release(rig.pair.log.log, rig.pair.log.meta_at)


@pytest.mark.parametrize(
    ("signal_eos", "is_ended", "is_revoked", "flags"),
    [
        (1, 0, 0, 0),
        (1, 1, 0, EOS),
        (0, 1, 0, 0),
        (1, 1, 1, EOS | REVOKED),
        (0, 1, 1, EOS | REVOKED),
        # The conductor finds out by its timer, which may be a second away.
        (1, 0, 1, EOS | REVOKED),
        (0, 0, 1, EOS | REVOKED),
    ],
)
def test_a_heartbeat_has_the_end_position_and_flags(rig, signal_eos, is_ended, is_revoked, flags):
    rig.record.signal_eos = signal_eos
    rig.start()
    rig.offer(100)
    rig.turn()
    if is_revoked:
        revoke(rig)
    if is_ended:
        rig.command(sender_state.END_PUBLICATION, SLOT, is_revoked)
    rig.turn()
    (datagram,) = rig.turn(100 * MS)
    assert datagram == wire.pack(
        "data", 0, 0, 0xC0 | flags, wire.DATA, 160, SESSION_ID, STREAM_ID, 7, 0
    )


def test_whole_frames_are_sent_as_they_are_in_the_log(rig):
    rig.start()
    rig.offer(100, 200, 1500, 4000)
    sent = rig.turn()
    assert [len(item) for item in sent] == [160 + 256, 1408, 160, 1408]
    sent += rig.turn() + rig.turn()
    assert b"".join(sent) == rig.bytes_of(0, rig.value(SND_POS))
    assert rig.value(SND_POS) == rig.pair.log.producer_position()
    heartbeats = 32 * rig.value(system_counters.HEARTBEATS_SENT)
    assert rig.value(system_counters.BYTES_SENT) == sum(map(len, sent)) + heartbeats


def test_nothing_is_sent_beyond_the_limit(rig):
    rig.start(window=2048)
    rig.offer(1000, 1000, 1000)
    sent = [item for _ in range(3) for item in rig.turn()]
    assert sum(map(len, sent)) == 1056
    rig.deliver_status(1056, 1056)
    sent = [item for _ in range(3) for item in rig.turn()]
    assert kinds(sent) == ["data"]
    assert rig.positions == (2112, 2112)


def test_back_pressure_is_counted_once_until_data_is_sent(rig):
    rig.start(window=1056)
    rig.offer(1000, 1000, 1000)
    counted = []
    for position in (None, None, 1056, None):
        if position:
            rig.deliver_status(position, 1056)
        for _ in range(3):
            rig.turn()
        counted.append((rig.value(SND_BPE), rig.value(system_counters.SENDER_FLOW_CONTROL_LIMITS)))
    assert counted == [(1, 1), (1, 1), (2, 2), (2, 2)]


def test_back_pressure_after_sent_data_is_counted_at_once(rig):
    """Like in the C driver: counted when detected, and again in the cycle that sends nothing."""
    rig.start(window=1500)
    rig.offer(100)
    rig.turn()
    rig.offer(1000, 1000)
    assert kinds(rig.turn()) == ["data"]
    assert rig.value(SND_BPE) == 1
    rig.turn()
    rig.turn()
    assert rig.value(SND_BPE) == 2


def test_a_revoked_stream_stays_disconnected(rig):
    rig.start()
    # The conductor writes the status first; the sender overwrites it until it gets the command.
    assert rig.is_connected()
    rig.command(sender_state.END_PUBLICATION, SLOT, 1)
    rig.turn()
    assert not rig.is_connected()


def test_a_frame_that_does_not_fit_the_limit_is_not_truncated(rig):
    rig.start(window=512)
    rig.offer(1000)
    assert rig.turn() == []
    assert rig.positions == (0, 512)
    # Nothing has left since the start, so there is nothing that could be held back again.
    assert rig.value(SND_BPE) == 0


def test_a_pad_is_sent_if_its_header_fits_the_limit(rig):
    rig.start()
    rig.fill_to(TERM - 1024)
    rig.deliver_status(rig.value(SND_POS), 64)
    rig.offer(32, 2000)
    sent = [item for _ in range(3) for item in rig.turn()]
    assert [len(item) for item in sent] == [64]
    rig.deliver_status(TERM - 1024, 64 + 32)
    sent = [item for _ in range(3) for item in rig.turn()]
    assert kinds(sent) == ["pad"]
    assert sent[0][:4] == (1024 - 64).to_bytes(4, "little")
    assert rig.positions == (TERM, TERM - 1024 + 96)


def abort(rig, position, length):
    """Turn the frame of an aborted message into padding."""
    at = rig.pair.log.base(position) + position % TERM
    assert int(rig.pair.log.log[at : at + 4].view("<i4")[0]) == length
    rig.pair.log.log[at + 6] = wire.PAD


def datagrams_of_one_send(lengths, are_pads, room, mtu, most):
    """Return position and length of each datagram of a send, computed naively."""
    frames, at = [], 0
    for length, is_pad in zip(lengths, are_pads, strict=True):
        frames.append((at, 32 if is_pad else length, length, is_pad))
        at += length
    found, reached = [], 0
    while frames and reached < room and len(found) < most:
        start, on_wire, limit = reached, 0, min(mtu, room - reached)
        while frames and on_wire + frames[0][1] <= limit:
            _, travels, length, is_pad = frames.pop(0)
            on_wire, reached = on_wire + travels, reached + length
            if is_pad:
                break
        if on_wire == 0:
            break
        found.append((start, on_wire))
    return found, reached


def test_at_most_one_pad_exceeds_the_limit(rig):
    rig.record.max_messages_per_send = 64
    rig.start(window=1408)
    rig.offer(*[1344] * 23, 1000)
    for number in range(23):
        abort(rig, number * 1376, 1376)
    sent = [item for _ in range(3) for item in rig.turn()]
    assert kinds(sent) == ["pad", "pad"]
    assert rig.positions == (2 * 1376, 1408)


@pytest.mark.parametrize("seed", range(20))
def test_sends_and_retransmits_agree_with_a_naive_implementation(rig, seed):
    chance = random.Random(seed)
    lengths = [32 * chance.randint(2, 44) for _ in range(30)]
    are_pads = [chance.random() < 0.4 for _ in lengths]
    room = 32 * chance.randint(1, 512)
    rig.record.max_messages_per_send = 64
    rig.start(window=room)
    rig.offer(*[length - 32 for length in lengths])
    for number, is_pad in enumerate(are_pads):
        if is_pad:
            abort(rig, sum(lengths[:number]), lengths[number])
    expected, reached = datagrams_of_one_send(lengths, are_pads, room, 1408, 64)
    assert rig.turn() == [rig.bytes_of(*each) for each in expected]
    assert rig.positions == (reached, room)
    # A retransmit has the same limits: the requested range ends where the sent data ends.
    rig.deliver_nak(0, reached)
    expected, _ = datagrams_of_one_send(lengths, are_pads, reached, 1408, 64)
    again = rig.turn() + rig.turn()
    assert [item for item in again if len(item) > 32 or item[6] == wire.PAD] == [
        rig.bytes_of(*each) for each in expected
    ]


@pytest.mark.parametrize(
    ("payload", "permitted", "expected"), [(1344, 128, 94), (1376, 128, 92), (1344, 40, 40)]
)
def test_one_send_ends_with_a_full_packet(tmp_path, payload, permitted, expected):
    rig = SendingRig(tmp_path, term_length=1 << 20)
    rig.record.max_messages_per_send = permitted
    rig.start(window=1 << 19)
    rig.offer(*[payload] * 200)
    assert [len(each) for each in rig.turn()] == [payload + 32] * expected


def test_a_failed_send_is_retried(rig):
    rig.start()
    rig.offer(1000, 1000)
    box = rig.pair.links.mailboxes[0]
    box.peer_length, peer = 0, int(box.peer_length)
    assert rig.turn() == []
    assert rig.value(system_counters.SHORT_SENDS) == 1
    assert rig.value(SND_POS) == 0
    box.peer_length = peer
    assert b"".join(rig.turn()) == rig.bytes_of(0, 2112)


def test_the_sent_part_of_a_batch_is_not_sent_again(rig):
    rig.start()
    rig.offer(*[1300] * 4)
    rings, ring_length = rig.pair.links.rings, rig.pair.links.memory.size // 4
    rings[1].head = rings[1].tail - (ring_length - 2 * (1376 + link.HEADER_LENGTH))
    head, tail = int(rings[1].head), int(rings[1].tail)
    rig.now_ns += 1
    sender.do_work(rig.state, rig.now_ns)
    assert (rig.value(SND_POS), rig.value(system_counters.SHORT_SENDS)) == (2 * 1344, 1)
    rings[1].head = tail
    assert head < tail
    assert b"".join(rig.take()) == rig.bytes_of(0, 2 * 1344)
    assert b"".join(rig.turn()) == rig.bytes_of(2 * 1344, 2 * 1344)


@pytest.mark.parametrize(
    ("begin", "length", "expected"),
    [
        (0, 1056, (0, 1056)),
        (1056, 1056, (1056, 1056)),
        (0, 3168, (0, 3168)),
        (0, 65_536, (0, 3168)),
        (0, 1088, (0, 1056)),
        (0, 1024, None),
        (3168, 32, None),
        (0, 0, None),
        (32, 1024, None),
    ],
)
def test_a_nak_causes_a_retransmit_of_whole_sent_frames(rig, begin, length, expected):
    rig.start(window=3168)
    rig.offer(1000, 1000, 1000, 1000)
    rig.turn()
    assert rig.value(SND_POS) == 3168
    rig.deliver_nak(begin, length)
    again = rig.turn() + rig.turn()
    assert b"".join(again) == (rig.bytes_of(*expected) if expected else b"")
    served, resent = (1, expected[1]) if expected else (0, 0)
    assert rig.value(system_counters.RETRANSMITS_SENT) == served
    assert rig.value(system_counters.RETRANSMITTED_BYTES) == resent
    assert rig.value(system_counters.NAKS_RECEIVED) == rig.value(NAKS_IN) == 1


def retransmits_for_nak(rig, position, length):
    rig.deliver_nak(position, length)
    before = rig.value(system_counters.RETRANSMITS_SENT)
    rig.turn()
    rig.turn()
    return rig.value(system_counters.RETRANSMITS_SENT) - before


def test_the_same_range_is_retransmitted_only_after_the_linger(rig):
    rig.start()
    rig.offer(1000, 1000)
    rig.turn()
    assert retransmits_for_nak(rig, 0, 1056) == 1
    rig.now_ns += 9 * MS
    assert retransmits_for_nak(rig, 0, 1056) == 0
    assert retransmits_for_nak(rig, 1056, 1056) == 1
    rig.turn(10 * MS)
    assert retransmits_for_nak(rig, 1056, 1056) == 1


def test_a_nak_for_an_old_or_invalid_term_is_ignored(rig):
    rig.start()
    rig.fill_to(TERM + 4096)
    oldest = TERM + 4096 - TERM // 2 - TERM // 8
    assert retransmits_for_nak(rig, oldest - 1024, 1024) == 0
    assert retransmits_for_nak(rig, oldest, 1024) == 1
    rig.turn(20 * MS)
    assert retransmits_for_nak(rig, rig.value(SND_POS), 1056) == 0
    assert retransmits_for_nak(rig, -TERM, 1056) == 0


def test_a_nak_for_data_before_the_stream_is_ignored(rig):
    rig.start()
    rig.offer(1000)
    rig.turn()
    for position in (-1056, -64):
        rig.plant(position, -position)
        assert retransmits_for_nak(rig, position, -position) == 0
        rig.turn(20 * MS)
    assert retransmits_for_nak(rig, 0, 1056) == 1
    assert rig.value(system_counters.NAKS_RECEIVED) == rig.value(NAKS_IN) == 3


def test_a_stream_starts_at_the_position_in_its_record(rig):
    rig.start()
    rig.offer(1000, 1000)
    rig.turn()
    rig.record.initial_position = 1056
    assert retransmits_for_nak(rig, 0, 1056) == 0
    rig.turn(20 * MS)
    assert retransmits_for_nak(rig, 0, 2112) == 0
    rig.turn(20 * MS)
    assert retransmits_for_nak(rig, 1056, 1056) == 1


def test_a_new_publication_in_an_old_slot_retransmits_its_own_data(rig):
    """A retransmit that lingers for the old stream must not suppress those of the new one."""
    rig.start()
    rig.offer(1000)
    rig.turn()
    assert retransmits_for_nak(rig, 0, 1056) == 1
    retire(rig)
    rig.record.resend_count = 0
    rig.command(sender_state.ADD_PUBLICATION, SLOT)
    rig.turn(1_000 * MS)
    assert retransmits_for_nak(rig, 0, 1056) == 1


def test_a_removed_publication_sends_nothing(rig):
    rig.start()
    rig.offer(1000)
    retire(rig)
    assert rig.turn(1_000 * MS) == []
    assert (sender_state.PUBLICATION_RELEASED, SLOT) in rig.events()
    assert retransmits_for_nak(rig, 0, 1056) == 0
    assert rig.value(system_counters.NAKS_RECEIVED) == 0
