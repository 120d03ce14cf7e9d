"""A cnc file of real Aeron is read to the last counter; a damaged one is refused."""

import re
import struct

import numpy as np
import pytest

from tests.golden.reader import GOLDEN, load_array
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError, map_cnc, read_cnc

SETS = ["loss-reliable", "java-cubic-loss"]
LINE = re.compile(r"\s*(\d+):\s+(-?[\d,]+) - (.*)")


def listed(golden):
    """Return (id, value, label) of each counter as Aeron's own tool printed them."""
    lines = (GOLDEN / golden / "aeron-stat.txt").read_text().splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    return [(int(m[1]), int(m[2].replace(",", "")), m[3]) for m in found if m]


@pytest.mark.parametrize("golden", SETS)
def test_all_counters_read_as_aerons_own_tool_prints_them(golden):
    cnc = read_cnc(load_array(golden, "cnc.dat"))
    ours = [(each.counter_id, each.label) for each in cnc.counters()]
    assert ours == [(counter_id, label) for counter_id, _, label in listed(golden)]
    still = [counter for counter in cnc.counters() if counter.type_id in (2, 3, 4, 5, 19, 20)]
    printed = {counter_id: value for counter_id, value, _ in listed(golden)}
    assert len(still) == 6
    assert all(counter.final_value == printed[counter.counter_id] for counter in still)


def test_the_header_is_read():
    cnc = read_cnc(load_array("loss-reliable", "cnc.dat"))
    assert (cnc.version, cnc.client_liveness_timeout_ns) == (512, 10_000_000_000)
    assert cnc.pid == 20499
    assert 0 < cnc.heartbeat[0] - cnc.start_timestamp_ms < 600_000
    assert cnc.errors() == []


def test_stream_counters_are_found_by_session_and_stream():
    counters = read_cnc(load_array("loss-reliable", "cnc.dat")).counters()
    (naks,) = counter_key.of_stream(counters, counter_key.RECEIVER_NAKS_SENT, 77, 1001)
    assert naks.final_value == 79
    assert naks.owner_id >= 0
    assert counter_key.of_stream(counters, counter_key.RECEIVER_NAKS_SENT, 78, 1001) == []
    (position,) = counter_key.of_stream(counters, counter_key.SUBSCRIBER_POSITION, 77, 1001)
    assert position.reference_id == naks.registration_id
    resent = counter_key.system_counter(counters, counter_key.RETRANSMITTED_BYTES)
    assert resent.label == "Retransmitted bytes"
    assert resent.final_value == 76_256
    assert counter_key.system_counter(counters, 60) is None


def header(lengths, version=512):
    return struct.pack("<6iqqqi", version, *lengths, 10, 20, 30, 4096).ljust(128, b"\0")


SMALL = (1024 + 768, 1024 + 128, 4 * 512, 4 * 128, 256)


def small(version=512, lengths=SMALL):
    return bytearray(header(lengths, version) + bytes(sum(max(each, 0) for each in lengths)))


def read(data):
    return read_cnc(np.frombuffer(bytes(data), dtype=np.uint8))


def test_an_unfinished_file_is_not_ready(tmp_path):
    assert read(b"") is None
    assert read(small()[:100]) is None
    assert read(small(version=0)) is None
    assert read(small()[:-1]) is None
    assert read(small()) is not None
    assert map_cnc(tmp_path / "cnc.dat") is None


@pytest.mark.parametrize("lengths", [(-1, 0, 0, 0, 0), (700, 0, 0, 0, 0)])
def test_impossible_lengths_are_refused(lengths):
    with pytest.raises(CncFileError, match="section lengths: expected"):
        read(small(lengths=lengths))


def test_another_major_version_is_refused():
    with pytest.raises(CncFileError, match="expected major version 0"):
        read(small(version=1 << 16))


def test_a_reclaimed_counter_is_skipped_and_an_unused_one_ends_the_list():
    data = small()
    metadata = 128 + SMALL[0] + SMALL[1]
    for index, state in enumerate((1, -1, 1, 0)):
        struct.pack_into("<ii", data, metadata + index * 512, state, 7)
        struct.pack_into("<i5s", data, metadata + index * 512 + 128, 5, b"label")
    cnc = read(data)
    assert cnc.counter_count() == 3
    assert [(each.counter_id, each.label) for each in cnc.counters()] == [
        (0, "label"),
        (2, "label"),
    ]
    struct.pack_into("<i", data, metadata + 3 * 512, 1)
    assert read(data).counter_count() == 4


@pytest.mark.parametrize("length", [-1, 381, 1 << 30])
def test_a_label_of_an_impossible_length_is_cut_to_its_field(length):
    data = small()
    struct.pack_into("<ii", data, 128 + SMALL[0] + SMALL[1], 1, 7)
    struct.pack_into("<i", data, 128 + SMALL[0] + SMALL[1] + 128, length)
    (counter,) = read(data).counters()
    assert len(counter.label) in (0, 380)


def test_the_error_log_is_read_up_to_its_end_or_its_damage():
    data = small()
    at = 128 + sum(SMALL[:4])
    struct.pack_into("<iiqq7s", data, at, 24 + 7, 3, 200, 100, b"went up")
    struct.pack_into("<iiqq5s", data, at + 32, 24 + 5, 1, 400, 300, b"again")
    errors = read(data).errors()
    assert [(each.count, each.first_ms, each.last_ms, each.text) for each in errors] == [
        (3, 100, 200, "went up"),
        (1, 300, 400, "again"),
    ]
    struct.pack_into("<i", data, at + 32, 10_000)
    assert len(read(data).errors()) == 1


def test_a_mapped_file_shows_what_is_written_later(tmp_path):
    file = tmp_path / "cnc.dat"
    file.write_bytes(small())
    cnc = map_cnc(file)
    assert cnc.counters() == []
    with file.open("r+b") as live:
        live.seek(128 + SMALL[0] + SMALL[1])
        live.write(struct.pack("<ii", 1, 9))
    assert [each.type_id for each in cnc.counters()] == [9]
    with pytest.raises(ValueError, match="read-only"):
        cnc.values["value"][0] = 1
