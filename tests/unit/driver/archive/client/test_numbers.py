"""Session ids from replay ids, base positions of segments, and counter keys."""

import struct

import pytest

from windtunnel.driver.archive.client import (
    recording_counters,
    segment_base_position,
    session_id_of,
)
from windtunnel.driver.archive.client.turns import advance, until
from windtunnel.driver.cnc.counters_reader import Counter


@pytest.mark.parametrize("session_id", [0, 5, -1, -(1 << 31), (1 << 31) - 1])
def test_the_low_half_of_a_replay_id_is_a_session_id(session_id):
    assert session_id_of(7 << 32 | session_id & 0xFFFF_FFFF) == session_id


@pytest.mark.parametrize(
    ("position", "base"),
    [(66_560, 65_536), (196_607, 65_536), (196_608, 196_608), (400_000, 327_680)],
)
def test_segment_bases_start_at_the_term_of_the_start_position(position, base):
    assert segment_base_position(66_560, position, 65_536, 131_072) == base


def test_segment_bases_of_a_recording_that_starts_at_zero():
    assert segment_base_position(0, 131_071, 65_536, 131_072) == 0
    assert segment_base_position(0, 131_072, 65_536, 131_072) == 131_072


def counter(recording_id, session_id, identity, archive_id, **changes):
    key = struct.pack("<qii", recording_id, session_id, len(identity)) + identity
    key += struct.pack("<q", archive_id)
    fields = {
        "counter_id": recording_id, "type_id": 100, "value": 0, "registration_id": 0,
        "owner_id": 0, "reference_id": 0, "key": key.ljust(112, b"\0"), "label": "",
    }  # fmt: skip
    return Counter(**fields | changes)


def test_a_counter_is_found_by_recording_or_session():
    counters = [
        counter(1, 10, b"aeron:ipc", 7, type_id=101),
        counter(1, 11, b"aeron:ipc", 7),
        counter(1, 12, b"127.0.0.1:4000", 8),
        counter(2, 13, b"127.0.0.1:40123", 8),
    ]
    assert recording_counters.find_by_recording(counters, 1).session_id == 11
    assert recording_counters.find_by_recording(counters, 1, 8).session_id == 12
    assert recording_counters.find_by_recording(counters, 2, 7) is None
    found = recording_counters.find_by_session(counters, 13, 8)
    assert (found.recording_id, found.source_identity) == (2, "127.0.0.1:40123")
    assert recording_counters.find_by_session(counters, 10) is None


@pytest.mark.parametrize("length", [-1, 89, 1 << 30])
def test_a_counter_with_a_damaged_key_is_ignored(length):
    damaged = counter(1, 11, b"", 7, key=struct.pack("<qii", 1, 11, length).ljust(112, b"\0"))
    assert recording_counters.read(damaged) is None
    whole = counter(1, 11, b"", 7, key=struct.pack("<qii", 1, 11, 88).ljust(112, b"\0"))
    assert recording_counters.read(whole) is not None


def test_until_polls_until_there_is_a_result():
    found = iter([None, None, 5])
    turns = until(lambda: next(found))
    assert [advance(turns) for _ in range(3)] == [(False, None), (False, None), (True, 5)]
