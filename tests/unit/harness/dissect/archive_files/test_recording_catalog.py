"""Catalogs of Aeron's archive and of ours are read, and invalid entries are named."""

import os
import re
import struct
from dataclasses import replace

import pytest

from tests.golden.archive_files import unpack
from tests.golden.reader import GOLDEN
from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.harness.dissect.archive_files.recording_catalog import (
    CATALOG_NAME,
    CatalogError,
    read_catalog,
    segment_files,
)

NAMES_OF_TOOL = {
    "startTimestamp": "start_timestamp_ms", "stopTimestamp": "stop_timestamp_ms",
    "segmentFileLength": "segment_length", "termBufferLength": "term_length", "mtuLength": "mtu",
}  # fmt: skip
FIRST_ENTRY = 32
TERM_LENGTH_AT, SEGMENT_LENGTH_AT, MTU_AT = 96, 92, 100


def described_by_tool():
    """Return the output of Aeron's own tool as fields of Recording."""
    text = (GOLDEN / "archive" / "describe.txt").read_text()
    for line in re.findall(r"^\[RecordingDescriptor\]\(.*?\):(.*)$", text, re.M):
        fields = {}
        for key, value in re.findall(r"(\w+)=('[^']*'|-?\d+)", line):
            name = NAMES_OF_TOOL.get(key) or re.sub(r"[A-Z]", lambda m: "_" + m[0].lower(), key)
            fields[name] = value.strip("'") if value.startswith("'") else int(value)
        yield fields


def own_catalog(folder, *descriptors):
    with CatalogWriter.create(folder) as writer:
        for each in descriptors:
            writer.add(each)
    return folder


def overwrite(folder, at, content):
    with (folder / CATALOG_NAME).open("r+b") as file:
        file.seek(at)
        file.write(content)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_only_a_regular_file_is_read(tmp_path, kind):
    path = own_catalog(tmp_path, own.descriptor(stop=0)) / CATALOG_NAME
    path.rename(tmp_path / "elsewhere")
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(path)
    with pytest.raises(CatalogError, match="expected a regular file"):
        read_catalog(tmp_path)


def test_the_golden_catalog_is_read_as_aerons_tool_printed_it(tmp_path):
    catalog = read_catalog(unpack(tmp_path))
    expected = list(described_by_tool())
    assert len(expected) == len(catalog.recordings) == 3
    for recording, fields in zip(catalog.recordings, expected, strict=True):
        assert len(fields) == 16
        assert {name: getattr(recording, name) for name in fields} == fields
        assert recording.is_readable
    assert catalog.damage == ""


def test_a_catalog_of_our_archive_is_read(tmp_path):
    made = [
        own.descriptor(0, stop=64),
        own.descriptor(1, original_channel="x" * 300),
        own.descriptor(2),
    ]
    own_catalog(tmp_path, *made)
    with CatalogWriter(tmp_path) as writer:
        writer.set_state(1, RecordingState.DELETED)
    found = read_catalog(tmp_path).recordings
    assert [each.recording_id for each in found] == [0, 1, 2]
    assert [each.is_readable for each in found] == [True, False, True]
    assert [each.stop_position for each in found] == [64, -1, -1]
    assert found[1].original_channel == "x" * 300


@pytest.mark.parametrize(
    ("at", "value", "fault"),
    [
        (TERM_LENGTH_AT, 65_535, "term length 65535 is invalid"),
        (SEGMENT_LENGTH_AT, 3 << 16, "segment length 196608 is invalid"),
        (SEGMENT_LENGTH_AT, -131_072, "segment length -131072 is invalid"),
        (MTU_AT, 32, "mtu 32 is invalid"),
        (4, 9, "state 9 is invalid"),
        (112, 1 << 30, "exceed the entry"),
        (48, 0, "recording 0 comes after recording 0"),
        (72, 33, "start position 33 is invalid"),
    ],
)
def test_an_invalid_entry_is_reported_and_those_after_it_are_read(tmp_path, at, value, fault):
    own_catalog(tmp_path, *(own.descriptor(index) for index in range(3)))
    entry_length = 32 + struct.unpack_from("<i", (tmp_path / CATALOG_NAME).read_bytes(), 32)[0]
    overwrite(tmp_path, FIRST_ENTRY + entry_length + at, struct.pack("<i", value))
    found = read_catalog(tmp_path).recordings
    assert [each.is_readable for each in found] == [True, False, True]
    assert fault in found[1].fault


def test_an_entry_of_an_impossible_length_hides_those_after_it(tmp_path):
    own_catalog(tmp_path, own.descriptor(0), own.descriptor(1))
    entry_length = 32 + struct.unpack_from("<i", (tmp_path / CATALOG_NAME).read_bytes(), 32)[0]
    for length in (1 << 30, 1):
        overwrite(tmp_path, FIRST_ENTRY + entry_length, struct.pack("<i", length))
        catalog = read_catalog(tmp_path)
        assert len(catalog.recordings) == 1
        assert f"length {length}" in catalog.damage


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "expected at least 32 bytes"),
        (bytes(31), "expected at least 32 bytes"),
        (bytes(32), "expected 3, found 0"),
        (struct.pack("<iiqi12x", 3 << 16, 32, 0, 0), "alignment: expected 64, found 0"),
        (struct.pack("<iiqi12x", 3 << 16, 32, 0, 96), "alignment: expected 64, found 96"),
    ],
)
def test_a_file_that_is_not_a_catalog_is_refused_by_name(tmp_path, content, fault):
    (tmp_path / CATALOG_NAME).write_bytes(content)
    with pytest.raises(CatalogError, match=fault):
        read_catalog(tmp_path)
    with pytest.raises(CatalogError, match="No such file"):
        read_catalog(tmp_path / "elsewhere")


def test_files_of_a_recording_are_found_by_their_positions(tmp_path):
    for name in ("1-0.rec", "1-131072.rec", "1-5.rec", "1-262144.rec.del", "x-0.rec", "2-0.rec"):
        (tmp_path / name).touch()
    last = ((1 << 31) - 1) << 30
    for name in (f"3-{last}.rec", f"3-{1 << 63}.rec", "4-1\u0663.rec"):
        (tmp_path / name).touch()
    files = segment_files(tmp_path)
    found = {key: sorted(value) for key, value in files.items()}
    assert found == {1: [0, 5, 131_072], 2: [0], 3: [last]}
    own_catalog(tmp_path, own.descriptor(0, start=own.SEGMENT + own.TERM + 64))
    (recording,) = read_catalog(tmp_path).recordings
    base = own.SEGMENT + own.TERM
    assert recording.first_base == base
    output = [
        recording.has_segment(each) for each in (0, base, base + own.TERM, base + own.SEGMENT)
    ]
    assert output == [False, True, False, True]
    assert recording.missing_base({base}) is None
    assert recording.missing_base({base + own.SEGMENT}) == base
    stopped = replace(recording, stop_position=base + own.SEGMENT)
    assert stopped.missing_base({base}) is None
    assert stopped.missing_base(set()) == base
    assert [stopped.has_segment(base + n * own.SEGMENT) for n in (1, 2)] == [True, False]
    assert (stopped.data_start(base), stopped.data_end(base)) == (base + 64, base + own.SEGMENT)
