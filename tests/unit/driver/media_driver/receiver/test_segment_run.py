"""A GRO packet changes an image like its datagrams that arrive one by one."""

import random

import numpy as np
import pytest

from tests.sim.stream_pair import MS
from tests.unit.driver.media_driver.receiving_rig import TERM, ReceivingRig, data, heartbeat, pad
from windtunnel.driver.base.atomics import put_i32, put_i64
from windtunnel.driver.media import transport
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import written_pages
from windtunnel.driver.media_driver.receiver import receiver, segment_run
from windtunnel.driver.wire import header

SOL_UDP, UDP_GRO = 17, 104
LENGTH = 256
PAYLOAD = LENGTH - 32
COUNTED = (
    system_counters.INVALID_PACKETS,
    system_counters.FLOW_CONTROL_OVER_RUNS,
    system_counters.FLOW_CONTROL_UNDER_RUNS,
    system_counters.HEARTBEATS_RECEIVED,
)


def changed(datagram: bytes, at: int, value: int) -> bytes:
    return datagram[:at] + bytes([value]) + datagram[at + 1 :]


OTHERS = {
    "another session": lambda position: data(position, PAYLOAD, session_id=1234),
    "another stream": lambda position: data(position, PAYLOAD, stream_id=77),
    "another term": lambda position: data(position + TERM, PAYLOAD),
    "later": lambda position: data(position + LENGTH, PAYLOAD),
    "earlier": lambda position: data(max(0, position - LENGTH), PAYLOAD),
    "two frames": lambda position: data(position, 32, PAYLOAD - 64),
    "a heartbeat": lambda position: heartbeat(position).ljust(LENGTH, b"\0"),
    "a PAD": lambda position: pad(position, 4096),
    "a PAD at the end": lambda position: (
        data(position, PAYLOAD - 32)[: LENGTH - 32] + pad(position + LENGTH - 32, 64)
    ),
    "another version": lambda position: changed(data(position, PAYLOAD), header.VERSION, 1),
    "another type": lambda position: changed(data(position, PAYLOAD), header.TYPE, 3),
    "a length that is too large": lambda position: changed(data(position, PAYLOAD), 1, 2),
    "a negative length": lambda position: changed(data(position, PAYLOAD), 3, 0x80),
    "a negative offset": lambda position: changed(data(position, PAYLOAD), 11, 0x80),
    "an offset within a frame": lambda position: changed(data(position, PAYLOAD), 8, 8),
    "a second frame at another offset": lambda position: changed(
        data(position, 32, PAYLOAD - 64), 64 + 9, 0x55
    ),
}


def rig_with_pages(folder):
    """Return a receiver whose image has a page map, and the map."""
    folder.mkdir()
    rig = ReceivingRig(folder)
    rig.start()
    pages = written_pages.make_pages(TERM)
    record = rig.state.images[0]
    record.pages_address, record.pages_length = pages.ctypes.data, pages.size
    return rig, pages


@pytest.fixture
def rigs(tmp_path):
    return rig_with_pages(tmp_path / "together"), rig_with_pages(tmp_path / "apart")


def receive(rig, packet: bytes, segment_length: int = 0) -> None:
    """Let the receiver process a message. For a GRO packet, give the length of its datagrams."""
    inbox = rig.state.inbox
    at = transport.incoming_at(inbox, 0)
    inbox.slots[at : at + len(packet)] = np.frombuffer(packet, np.uint8)
    inbox.names[0] = rig.pair.names[0]
    head = inbox.headers[0]
    head.length, head.name_length, head.message_flags = len(packet), 16, 0
    head.control_length = 20 if segment_length else 0
    put_i64(inbox.controls, 0, 20)
    put_i32(inbox.controls, 8, SOL_UDP)
    put_i32(inbox.controls, 12, UDP_GRO)
    put_i32(inbox.controls, 16, segment_length)
    receiver.on_message(rig.state, 0, 0, rig.now_ns)


def facts(rig, pages):
    """Return all that a datagram may change."""
    record = rig.state.images[:1].copy()
    record["log_address"] = record["pages_address"] = 0
    return {
        "log": rig.log().tobytes(),
        "positions": rig.positions,
        "counters": [rig.value(each) for each in COUNTED],
        "image": record.tobytes(),
        "connections": rig.state.connections[:16].tobytes(),
        "endpoint": rig.state.endpoints[:1].tobytes(),
        "pages": pages.tobytes(),
    }


def both(rigs, datagrams, segment_length=LENGTH):
    """Process datagrams as one packet and one by one, and compare."""
    (together, pages), (apart, apart_pages) = rigs
    for rig, _ in rigs:
        rig.now_ns += 1
    receive(together, b"".join(datagrams), segment_length)
    for each in datagrams:
        receive(apart, each)
    found, expected = facts(together, pages), facts(apart, apart_pages)
    assert [name for name in expected if found[name] != expected[name]] == []


def run_of(position: int, count: int) -> list[bytes]:
    return [data(position + LENGTH * index, PAYLOAD) for index in range(count)]


def inserted(rig, datagrams) -> int:
    """Return how many datagrams `segment_run` inserts of a packet."""
    packet = b"".join(datagrams)
    inbox = rig.state.inbox
    inbox.slots[: len(packet)] = np.frombuffer(packet, np.uint8)
    end = segment_run.insert(rig.state, 0, 0, len(packet), LENGTH, 0, rig.now_ns)
    assert end % LENGTH == 0 or end == len(packet)
    return -(-end // LENGTH)


def test_a_run_is_inserted_as_a_whole(rigs):
    both(rigs, run_of(0, 20))
    assert rigs[0][0].positions[1] == 20 * LENGTH
    assert inserted(rigs[0][0], run_of(20 * LENGTH, 9)) == 9


def test_the_last_datagram_may_be_shorter(rigs):
    both(rigs, [*run_of(0, 3), data(3 * LENGTH, 32)])
    assert rigs[0][0].positions[1] == 3 * LENGTH + 64


@pytest.mark.full(keep=6)
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("index", [0, 1, 3])
def test_any_other_datagram_ends_the_run(rigs, name, index):
    datagrams = run_of(1024, 4)
    datagrams[index] = OTHERS[name](1024 + index * LENGTH)
    if len(datagrams[index]) == LENGTH or index == 3:
        both(rigs, datagrams)
    if name != "two frames":
        (rig, _), _ = rigs
        later = run_of(8192, 4)
        later[index] = OTHERS[name](8192 + index * LENGTH)
        starts_another = index == 0 and name in ("later", "earlier")
        assert inserted(rig, later) == index + starts_another


def test_a_run_ends_at_the_end_of_its_term(rigs):
    both(rigs, run_of(0, 4))
    for rig, _ in rigs:
        rig.state.images[0].over_run_threshold = 2 * TERM
    datagrams = run_of(TERM - 2 * LENGTH, 4)
    both(rigs, datagrams)
    assert rigs[0][0].positions[1] == TERM + 2 * LENGTH


def test_a_run_ends_before_an_existing_frame(rigs):
    both(rigs, run_of(3 * LENGTH, 1))
    assert inserted(rigs[0][0], run_of(0, 5)) == 3
    receive(rigs[1][0], b"".join(run_of(0, 3)), LENGTH)
    both(rigs, run_of(0, 5))


def test_a_run_ends_at_the_limit_of_over_runs(rigs):
    most = int(rigs[0][0].state.images[0].over_run_threshold)
    both(rigs, run_of(most - 2 * LENGTH, 4))
    assert rigs[0][0].value(system_counters.FLOW_CONTROL_OVER_RUNS) == 2
    both(rigs, run_of(most - 3 * LENGTH - 32, 4))


def test_data_below_the_acknowledged_position_is_not_inserted(rigs):
    for rig, _ in rigs:
        rig.state.images[0].last_status_position = 2 * LENGTH
    both(rigs, run_of(0, 4))
    assert rigs[0][0].value(system_counters.FLOW_CONTROL_UNDER_RUNS) == 2
    assert inserted(rigs[0][0], run_of(0, 4)) == 0


@pytest.mark.parametrize("field", ["is_rejected", "is_stamping", "is_fill_delayed"])
def test_a_rejected_stamping_or_gap_filling_image_takes_datagrams_one_by_one(rigs, field):
    (rig, _), _ = rigs
    rig.state.images[0][field] = 1
    assert inserted(rig, run_of(0, 4)) == 0


def test_a_truncated_packet_is_not_inserted(rigs):
    (rig, _), _ = rigs
    rig.state.inbox.headers[0].message_flags = transport.TRUNCATED
    assert inserted(rig, run_of(0, 4)) == 0


def test_a_run_gives_a_connection_its_address(rigs):
    for rig, _ in rigs:
        rig.state.connections[0].control_length = 0
    both(rigs, run_of(0, 4))
    assert rigs[0][0].state.connections[0].control_length == 16


@pytest.mark.parametrize("seed", range(8))
def test_random_packets_agree_with_their_datagrams(rigs, seed):
    rng = random.Random(seed)
    # A PAD that ends in the middle of the next frame leaves a position that nothing can fill.
    names = [name for name in OTHERS if name != "a PAD at the end"]
    position = 0
    for _ in range(40):
        count = rng.randint(2, 24)
        begin = max(0, position + LENGTH * rng.choice([0, 0, 0, 0, -1, -3, 1, 2]))
        datagrams = run_of(begin, count)
        for index in range(count):
            if rng.random() < 0.08:
                name = rng.choice(names)
                datagrams[index] = OTHERS[name](begin + index * LENGTH).ljust(LENGTH, b"\0")
        if rng.random() < 0.3:
            datagrams[-1] = datagrams[-1][: rng.choice([32, 64, 96, 40, 8, 1])]
        both(rigs, datagrams)
        position = begin + count * LENGTH
        repair(rigs, position)
    assert rigs[0][0].positions[0] > TERM


def repair(rigs, end):
    """Send what is missing up to a position, and let a subscriber read it."""
    while (position := rigs[0][0].positions[0]) < end:
        both(rigs, [data(position, LENGTH - position % LENGTH - 32)], segment_length=0)
        for rig, _ in rigs:
            rig.turn(MS)
            rig.consume(rig.positions[0])
            rig.turn(MS)
        assert rigs[0][0].positions[0] > position
