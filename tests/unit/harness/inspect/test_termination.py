"""The termination request in a driver's command ring, which does not affect other clients."""

import struct

import numpy as np
import pytest

from tests.unit.harness.inspect.driver_folder import RING, RING_AT, small_cnc, write
from windtunnel.driver.cnc import ring_buffer, ring_buffer_reader
from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError
from windtunnel.harness.inspect.aeron_dir import NothingThereError
from windtunnel.harness.inspect.compare_and_swap import compare_and_swap
from windtunnel.harness.inspect.termination import RequestError, Ring, request_termination

CAPACITY = RING - 768
TAIL, HEAD, NEXT_ID = CAPACITY + 128, CAPACITY + 384, CAPACITY + 512


def a_ring(*, tail=0, head=0, next_id=41):
    section = np.zeros(RING, dtype=np.uint8)
    for at, value in ((TAIL, tail), (HEAD, head), (NEXT_ID, next_id)):
        struct.pack_into("<q", section, at, value)
    return section


def word(section, at):
    return struct.unpack_from("<q", section, at)[0]


def record(section, at):
    length, type_id = struct.unpack_from("<ii", section, at)
    return length, type_id, bytes(section[at + 8 : at + length])


def test_the_record_is_that_of_the_protocol():
    section = a_ring()
    Ring(section).request_termination(b"open")
    assert record(section, 0) == (8 + 24, 0x0E, struct.pack("<qqi", 41, -1, 4) + b"open")
    assert (word(section, TAIL), word(section, HEAD), word(section, NEXT_ID)) == (32, 0, 42)
    assert not section[32:CAPACITY].any()


def test_the_driver_reads_the_record_from_the_ring():
    section = a_ring()
    Ring(section).request_termination(b"")
    taken = np.zeros(CAPACITY, dtype=np.uint8)
    source = np.zeros(16, dtype=np.uint8)
    assert ring_buffer.write(section, 5, source, 0, 16) == ring_buffer.OK
    found = [ring_buffer_reader.read(section, taken)[0] for _ in range(2)]
    assert found == [0x0E, 5]


@pytest.mark.parametrize("left", [8, 24, 32, 40])
def test_a_record_that_does_not_fit_before_the_end_is_preceded_by_padding(left):
    start = CAPACITY * 7 - left
    section = a_ring(tail=start, head=start)
    Ring(section).request_termination(b"open")
    padded = left < 32
    at = 0 if padded else CAPACITY - left
    assert record(section, at)[:2] == (32, 0x0E)
    if padded:
        assert record(section, CAPACITY - left)[:2] == (left, -1)
    assert word(section, TAIL) == start + 32 + (left if padded else 0)


@pytest.mark.parametrize("free", [0, 24, 32])
def test_a_full_ring_is_not_changed(free):
    section = a_ring(tail=CAPACITY - free, head=0)
    before = section.copy()
    if free >= 32:
        Ring(section).request_termination(b"open")
        assert word(section, TAIL) == CAPACITY
        return
    with pytest.raises(RequestError, match="is full"):
        Ring(section).request_termination(b"open")
    struct.pack_into("<q", before, NEXT_ID, 42)
    assert bytes(section) == bytes(before)


def test_the_padding_needs_space_too():
    tail = 2 * CAPACITY - 24
    section = a_ring(tail=tail, head=tail - (CAPACITY - 48))
    with pytest.raises(RequestError, match="is full"):
        Ring(section).request_termination(b"open")
    section = a_ring(tail=tail, head=tail - (CAPACITY - 56))
    Ring(section).request_termination(b"open")
    assert record(section, 0)[1] == 0x0E


@pytest.mark.parametrize(
    "wrong", [{"tail": 4}, {"tail": -8}, {"head": 8}, {"tail": CAPACITY + 8}, {"tail": 1 << 62}]
)
def test_a_damaged_ring_is_refused_in_finite_time(wrong):
    section = a_ring(**wrong)
    with pytest.raises(RequestError, match="damaged"):
        Ring(section).request_termination(b"")
    assert not section[:CAPACITY].any()


def test_a_token_that_exceeds_the_ring_is_refused():
    Ring(a_ring()).request_termination(bytes(CAPACITY // 8 - 20))
    with pytest.raises(RequestError, match="use a shorter token"):
        Ring(a_ring()).request_termination(bytes(CAPACITY // 8 - 19))


def test_a_claim_is_repeated_if_another_client_was_faster(monkeypatch):
    section = a_ring()
    tries = []

    def contested(words, index, expected, desired):
        tries.append(index)
        if tries.count(index) == 1 and index == TAIL // 8:
            words[index] += 64
        return compare_and_swap(words, index, expected, desired)

    monkeypatch.setattr("windtunnel.harness.inspect.termination.compare_and_swap", contested)
    Ring(section).request_termination(b"")
    assert not section[:64].any()
    assert record(section, 64)[1] == 0x0E


def test_replaces_only_the_expected_value():
    words = np.array([5, 6, 7], dtype=np.int64)
    assert not compare_and_swap(words, 1, 5, 9)
    assert words.tolist() == [5, 6, 7]
    assert compare_and_swap(words, 1, 6, -9)
    assert words.tolist() == [5, -9, 7]


def test_the_file_is_changed_in_its_ring_only(tmp_path):
    content = small_cnc()
    write(tmp_path, content)
    request_termination(tmp_path, b"now")
    changed = (tmp_path / "cnc.dat").read_bytes()
    ring = slice(RING_AT, RING_AT + RING)
    assert record(np.frombuffer(changed[ring], dtype=np.uint8), 0)[1] == 0x0E
    assert changed[: ring.start] + changed[ring.stop :] == (
        bytes(content[: ring.start] + content[ring.stop :])
    )


def test_invalid_files_are_refused(tmp_path):
    with pytest.raises(NothingThereError):
        request_termination(tmp_path, b"")
    with pytest.raises(NothingThereError, match="not initialized"):
        request_termination(write(tmp_path, small_cnc(version=0)), b"")
    with pytest.raises(CncFileError, match="the file ends inside its command ring"):
        request_termination(write(tmp_path, small_cnc()[:1000]), b"")
    odd = small_cnc()
    struct.pack_into("<i", odd, 4, RING - 8)
    with pytest.raises(CncFileError, match="a power of two"):
        request_termination(write(tmp_path, odd), b"")
