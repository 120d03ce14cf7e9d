"""Files of the C and Java drivers, read in the same way as Aeron, and reproduced byte for byte."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.golden.reader import GOLDEN, load_array
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.atomics import get_i64, put_i64
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.cnc import broadcast, cnc_file, counters, ring_buffer, ring_buffer_reader
from windtunnel.driver.cnc.cnc_header import CncHeader
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.cnc.counters_reader import Counter, CountersReader
from windtunnel.driver.cnc.error_log import read_errors

STREAM_SETS = ["one-message", "clean", "loss-unreliable", "java-cubic-loss"]
ALL_SETS = [*STREAM_SETS, "commands"]

TICKING = {0, 1, 7, 8, 9, 10, 26, 28, 30}
"""System counters that had changed when AeronStat read them, a moment after the copy was made."""
ROUND_TRIP_TIME_LABEL = "rcv-cc-cubic-rtt"


OpenGolden = Callable[[str], cnc_file.CncFile]


@pytest.fixture(scope="module")
def open_golden(tmp_path_factory: pytest.TempPathFactory) -> OpenGolden:
    """Open a file of a set for reading; each of these large files is unpacked only once."""
    unpacked: dict[str, Path] = {}

    def open_set(name: str) -> cnc_file.CncFile:
        if name not in unpacked:
            unpacked[name] = tmp_path_factory.mktemp(name)
            load_array(f"cnc-{name}", "cnc.dat").tofile(unpacked[name] / cnc_file.FILE_NAME)
        return cnc_file.open_existing(unpacked[name])

    return open_set


def aeron_stat(name: str) -> dict[int, tuple[int, str]]:
    """Return a map from counter id to value and label, as printed by Aeron's tool."""
    text = (GOLDEN / f"cnc-{name}" / "aeron-stat.txt").read_text()
    lines = re.findall(r"^ *(\d+): +(-?[\d,]+) - (.*)$", text, re.MULTILINE)
    return {int(line[0]): (int(line[1].replace(",", "")), line[2]) for line in lines}


def read_counters(cnc: cnc_file.CncFile) -> list[Counter]:
    return list(CountersReader(cnc.counters_metadata, cnc.counters_values))


@pytest.mark.parametrize("name", STREAM_SETS)
def test_counters_equal_the_output_of_aeron_stat(name: str, open_golden: OpenGolden) -> None:
    found = read_counters(open_golden(name))
    expected = aeron_stat(name)
    assert len(expected) >= 62
    assert {one.counter_id: one.label for one in found} == {
        counter_id: label for counter_id, (_, label) in expected.items()
    }
    for counter in found:
        value, label = expected[counter.counter_id]
        if counter.counter_id in TICKING:
            assert 0 < counter.value <= value
        elif not label.startswith(ROUND_TRIP_TIME_LABEL):
            assert counter.value == value, label


@pytest.mark.parametrize("name", ALL_SETS)
def test_system_counters_have_their_id_as_key_and_registration(
    name: str, open_golden: OpenGolden
) -> None:
    for counter in read_counters(open_golden(name))[:46]:
        assert (counter.type_id, counter.owner_id, counter.reference_id) == (0, -1, 0)
        assert counter.registration_id == counter.counter_id
        assert counter.key == counter.counter_id.to_bytes(4, "little").ljust(112, b"\0")


@pytest.mark.parametrize("name", ALL_SETS)
def test_header_and_sections_equal_those_of_aeron(
    name: str, open_golden: OpenGolden, tmp_path: Path
) -> None:
    golden = open_golden(name)
    header = golden.header
    chosen = CncHeader(start_timestamp_ms=header.start_timestamp_ms, pid=header.pid)
    if name == "java-cubic-loss":
        chosen = CncHeader(
            counters_metadata_buffer_length=4 << 20,
            counters_values_buffer_length=1 << 20,
            start_timestamp_ms=header.start_timestamp_ms,
            pid=header.pid,
        )
    assert chosen == header
    assert chosen.file_length == golden.mapping.length
    cnc = cnc_file.create(tmp_path, chosen, sparse=True)
    cnc.set_ready(1)
    assert cnc.mapping.array[:128].tobytes() == golden.mapping.array[:128].tobytes()
    assert cnc.mapping.length == golden.mapping.length


@pytest.mark.parametrize("name", ALL_SETS)
def test_the_ring_has_been_consumed_to_zero(name: str, open_golden: OpenGolden) -> None:
    cnc = open_golden(name)
    ring = cnc.to_driver.copy()
    position = ring_buffer.producer_position(ring)
    assert position == ring_buffer.consumer_position(ring) > 0
    assert position % 8 == 0
    assert not ring[: int(ring_buffer.capacity(ring))].any()
    assert not ring_buffer_reader.has_message(ring)
    assert ring_buffer.next_correlation_id(ring) == (22 if name == "commands" else 6)
    assert cnc.is_driver_alive(cnc.heartbeat_ms() + 10_000)
    assert 0 < cnc.heartbeat_ms() - cnc.header.start_timestamp_ms < 60_000


@pytest.mark.parametrize("name", ALL_SETS)
def test_retransmitting_gives_the_same_broadcast(name: str, open_golden: OpenGolden) -> None:
    theirs = open_golden(name).to_clients.copy()
    receiver = broadcast.make_receiver(theirs)
    receiver[0].next = 0
    ours = np.zeros_like(theirs)
    scratch = broadcast.make_scratch(theirs)
    count = 0
    while True:
        type_id, length = broadcast.receive(theirs, receiver, scratch)
        if type_id == broadcast.NO_MESSAGE:
            break
        assert type_id > 0xF00
        broadcast.transmit(ours, type_id, scratch, 0, length)
        count += 1
    assert count == (24 if name == "commands" else 5)
    # Between the end of a message and its alignment the C driver leaves what was in its memory.
    at = 0
    while at < broadcast.tail_position(ours):
        length = int(get_i64(theirs, at) & 0xFFFFFFFF)
        end = (at + length + 7) // 8 * 8
        theirs[at + length : end] = 0
        at = end
    assert (theirs == ours).all()


@pytest.mark.parametrize("name", STREAM_SETS)
def test_reallocating_their_counters_gives_the_same_bytes(
    name: str, open_golden: OpenGolden
) -> None:
    cnc = open_golden(name)
    metadata, values = np.zeros_like(cnc.counters_metadata), np.zeros_like(cnc.counters_values)
    manager = CountersManager(metadata, values, ManualClock())
    found = read_counters(cnc)
    assert [counter.counter_id for counter in found] == list(range(len(found)))
    for counter in found:
        manager.allocate(
            counter.type_id,
            counter.key,
            counter.label,
            counter.registration_id,
            counter.owner_id,
            counter.reference_id,
            counter.value,
        )
    assert get_i64(metadata, counters.FREE_FOR_REUSE_DEADLINE_MS) == I64_MAX
    assert (metadata == cnc.counters_metadata).all()
    assert (values == cnc.counters_values).all()


def test_freed_counters_are_skipped(open_golden: OpenGolden) -> None:
    cnc = open_golden("commands")
    found = {counter.counter_id: counter for counter in read_counters(cnc)}
    assert set(range(46)) < set(found)
    assert 64 not in found
    assert counters.state(cnc.counters_metadata, 64) == counters.RECLAIMED
    static = found[65]
    assert (static.type_id, static.registration_id, static.owner_id) == (1235, 77, -1)
    assert (static.key.rstrip(b"\0"), static.label) == (b"xyz", "static")
    reader = CountersReader(cnc.counters_metadata, cnc.counters_values)
    assert reader.find(1235, 77) == 65
    assert reader.find(1234, 7) is None


@pytest.mark.parametrize("name", STREAM_SETS)
def test_the_stream_sets_have_no_errors(name: str, open_golden: OpenGolden) -> None:
    assert read_errors(open_golden(name).error_log) == []


def test_their_error_log_contains_four_errors(open_golden: OpenGolden) -> None:
    cnc = open_golden("commands")
    errors = read_errors(cnc.error_log)
    assert [error.observation_count for error in errors] == [1, 2, 1, 1]
    assert [error.text.splitlines()[0] for error in errors[:3]] == [
        "(22) Invalid argument",
        "(-6) unknown command type id",
        "(-7) malformed command",
    ]
    assert errors[3].text.endswith("errorCode=13, errorMessage=no")
    start_ms = cnc.header.start_timestamp_ms
    for error in errors:
        assert start_ms < error.first_observation_ms <= error.last_observation_ms
    assert counters.get(cnc.counters_values, 15) == 5


def test_a_late_client_receives_only_the_latest(open_golden: OpenGolden) -> None:
    theirs = open_golden("clean").to_clients.copy()
    receiver = broadcast.make_receiver(theirs)
    scratch = broadcast.make_scratch(theirs)
    assert tuple(broadcast.receive(theirs, receiver, scratch)) == (0xF02, 91)
    assert tuple(broadcast.receive(theirs, receiver, scratch)) == (broadcast.NO_MESSAGE, 0)


def test_a_lapped_client_of_a_real_file_gets_lapped(open_golden: OpenGolden) -> None:
    theirs = open_golden("clean").to_clients.copy()
    receiver = broadcast.make_receiver(theirs)
    size = theirs.size - broadcast.TRAILER_LENGTH
    put_i64(theirs, size + broadcast.TAIL_INTENT, size + int(receiver[0].next))
    scratch = broadcast.make_scratch(theirs)
    assert tuple(broadcast.receive(theirs, receiver, scratch)) == (broadcast.LAPPED, 0)
