"""Names of segment files and their positions."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden import archive_files
from windtunnel.driver.archive.storage import segment_file
from windtunnel.driver.base.errors import StorageError


def recording(start, term_length, segment_length):
    return SimpleNamespace(
        start_position=start, term_buffer_length=term_length, segment_file_length=segment_length
    )


def test_bases_start_at_the_term_of_the_start_position():
    def base(position):
        return segment_file.base_of(recording(66_560, 65_536, 131_072), position)

    assert base(66_560) == 65_536
    assert base(196_607) == 65_536
    assert base(196_608) == 196_608
    assert base(327_680) == 327_680


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(16, 24), st.integers(0, 6))
def test_any_position_is_within_the_segment_of_its_base(start, ahead, term_bits, more_bits):
    term, segment = 1 << term_bits, 1 << (term_bits + more_bits)
    start -= start % 32
    base = segment_file.base_of(recording(start, term, segment), start + ahead)
    assert base <= start + ahead < base + segment
    assert (base - segment_file.term_base(start, term)) % segment == 0
    assert segment_file.term_base(start, term) <= start


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("0-0.rec", (0, 0, False)),
        ("12-131072.rec", (12, 131072, False)),
        ("3--65536.rec", (3, -65536, False)),
        ("3-65536.rec.del", (3, 65536, True)),
    ],
)
def test_a_file_name_is_parsed_to_its_segment(name, found):
    segment = segment_file.parse_name(Path(name))
    assert (segment.recording_id, segment.base, segment.is_deleted) == found


@pytest.mark.parametrize(
    "name",
    [
        *("-1-0.rec", "0-0.recs", "0-0", "0-00.rec", "00-0.rec", "0-.rec", "a-0.rec", ""),
        *("0-0.rec ", "0-0.REC", "0-99999999999999999999999.rec", "archive.catalog"),
        *("\u0663-0.rec", "0-1\u0663.rec", "1\u0663-0.rec"),
    ],
)
def test_other_file_names_are_ignored(name):
    assert segment_file.parse_name(Path(name)) is None


@given(st.integers(0, 10**18), st.integers(0, 10**18))
def test_a_created_name_is_parsed_back(recording_id, base):
    segment = segment_file.parse_name(Path(segment_file.file_name(recording_id, base)))
    assert (segment.recording_id, segment.base) == (recording_id, base)


def test_segments_of_the_real_archive_are_found_in_order(tmp_path):
    archive_files.unpack(tmp_path)
    found = segment_file.segments_by_recording(tmp_path)
    assert {key: [each.base // 131_072 for each in files] for key, files in found.items()} == {
        0: [0, 1, 2],
        1: [0, 1, 2, 3],
        2: [0, 1, 2, 3, 4, 5, 6],
    }
    assert segment_file.segments_of(tmp_path, 9) == []


def test_a_missing_directory_is_reported(tmp_path):
    with pytest.raises(StorageError, match=r"cannot list .*nowhere"):
        segment_file.segments_of(tmp_path / "nowhere", 0)
