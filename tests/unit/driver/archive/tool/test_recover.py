"""The recover command: every way to lose a catalog, and the result."""

import os
import shutil
import struct
import zlib
from dataclasses import replace

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.driver.archive.tool.outcome import put_mark_file
from windtunnel.driver.archive.storage import mark_file_writer
from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from windtunnel.driver.archive.storage.checksum import CRC_32
from windtunnel.driver.archive.tool.directory import now_ms

UNKNOWN = {
    "stripped_channel": "aeron:udp?alias=recovered-channel-unknown",
    "original_channel": "aeron:udp?alias=recovered-channel-unknown",
    "source_identity": "unknown (recovered)",
}
LENGTHS = [1000, 200, 1376, 31, 700] * 60


def _descriptors(folder):
    with Catalog(folder) as catalog:
        assert catalog.damage == ""
        return {each: catalog.descriptor(each) for each in catalog.recording_ids}


def _offsets(folder):
    with Catalog(folder) as catalog:
        return [entry.offset for entry in catalog.entries()]


def _patch(folder, at, content):
    with open(folder / FILE_NAME, "r+b") as file:
        file.seek(at)
        file.write(content)


def _segments(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.rec")}


def _as_found(descriptor, **changed):
    """Return a descriptor with only the fields that frames contain."""
    return replace(descriptor, control_session_id=0, correlation_id=0, **UNKNOWN | changed)


def _without_times(descriptor):
    return replace(descriptor, start_timestamp=0, stop_timestamp=0)


def test_a_missing_catalog_is_rebuilt_from_the_frames(tool, golden):
    expected, before = _descriptors(golden), _segments(golden)
    (golden / FILE_NAME).unlink()
    shown = tool("recover", "--dry-run")
    assert shown.code == 0
    assert "nothing was changed" in shown.out
    assert not (golden / FILE_NAME).exists()
    outcome = tool("recover")
    assert (outcome.code, outcome.err) == (0, "")
    assert "damage: " in outcome.out
    assert "expected archive.catalog next to 14 segment files of 3 recordings" in outcome.out
    assert "recording 1: rebuilt, stream 2002" in outcome.out
    assert (
        "unknown: source, and channel, entered as aeron:udp?alias=recovered-channel-unknown"
        in outcome.out
    )
    assert "guessed: start and stop time" in outcome.out
    found = _descriptors(golden)
    # The files of the third recording that were detached are at its beginning again.
    expected[2] = replace(expected[2], start_position=0)
    assert {each: _without_times(found[each]) for each in found} == {
        each: _without_times(_as_found(expected[each])) for each in expected
    }
    assert _segments(golden) == before
    assert tool("verify", "-a").code == 0
    with CatalogWriter(golden) as catalog:
        assert catalog.add(own.descriptor()) == 3


def test_an_undamaged_catalog_is_not_changed(tool, golden):
    tool("mark-invalid", 1)
    before = (golden / FILE_NAME).read_bytes()
    for _ in range(2):
        outcome = tool("recover")
        assert outcome.code == 0
        assert "nothing to recover" in outcome.out
    assert (golden / FILE_NAME).read_bytes() == before
    assert not list(golden.glob("*damaged*"))


def test_a_second_recovery_changes_nothing(tool, golden):
    (golden / FILE_NAME).unlink()
    tool("recover")
    before = (golden / FILE_NAME).read_bytes()
    assert "nothing to recover" in tool("recover").out
    assert (golden / FILE_NAME).read_bytes() == before


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("length", [0, -1, 77, 480, 1 << 30])
def test_entries_after_a_wrong_length_are_kept(tool, golden, index, length):
    tool("mark-invalid", (index + 1) % 3)
    with CatalogWriter(golden) as catalog:
        catalog.add(own.descriptor(stop=0))
    expected, before = _descriptors(golden), (golden / FILE_NAME).read_bytes()
    _patch(golden, _offsets(golden)[index], struct.pack("<i", length))
    damaged = (golden / FILE_NAME).read_bytes()
    outcome = tool("recover")
    assert outcome.code == 0
    assert outcome.out.count("entry kept") == 4
    assert _descriptors(golden) == expected
    assert (golden / FILE_NAME).read_bytes() == before
    (kept,) = golden.glob("archive.catalog.damaged-*")
    assert kept.read_bytes() == damaged
    assert kept.name in outcome.out


def test_a_deleted_recording_stays_deleted_and_its_id_is_not_reused(tool, golden):
    with CatalogWriter(golden) as catalog:
        catalog.add(own.descriptor(stop=0))
        catalog.set_state(3, RecordingState.DELETED)
    _patch(golden, _offsets(golden)[1], bytes(4))
    assert tool("recover").code == 0
    with CatalogWriter(golden) as catalog:
        assert catalog.entry(3).state == RecordingState.DELETED
        assert catalog.add(own.descriptor()) == 4


def test_ids_of_lost_entries_are_not_reused(tool, golden):
    _patch(golden, 8, struct.pack("<q", 9))
    _patch(golden, _offsets(golden)[1], bytes(4))
    assert "next recording id: 9" in tool("recover").out
    with CatalogWriter(golden) as catalog:
        assert catalog.add(own.descriptor()) == 9


@pytest.mark.parametrize("cut", [0, 16, 32, 40, 300, 700])
def test_a_truncated_catalog_keeps_its_remaining_entries(tool, golden, cut):
    expected = _descriptors(golden)
    content = (golden / FILE_NAME).read_bytes()[:cut]
    (golden / FILE_NAME).write_bytes(content)
    assert tool("recover").code == 0
    found = _descriptors(golden)
    whole = [each for each in range(3) if [288, 544, 800][each] <= cut + 32]
    assert [found[each] for each in whole] == [expected[each] for each in whole]
    assert [found[each].stop_position for each in range(3)] == [268448, 479104, 855776]


def test_a_catalog_of_arbitrary_bytes_is_replaced(tool, golden):
    (golden / FILE_NAME).write_bytes(os.urandom(65_536))
    assert tool("recover").code == 0
    assert list(_descriptors(golden)) == [0, 1, 2]


def test_a_catalog_of_an_older_storage_version_is_rejected(tool, golden):
    _patch(golden, 0, struct.pack("<i", 2 << 16))
    before = (golden / FILE_NAME).read_bytes()
    outcome = tool("recover")
    assert outcome.code == 2
    assert "expected storage version 3.x, found 2.0.0" in outcome.err
    assert (golden / FILE_NAME).read_bytes() == before


def test_a_damaged_entry_keeps_the_texts_that_its_files_do_not_contain(tool, golden):
    expected = _descriptors(golden)
    offsets = _offsets(golden)
    _patch(golden, offsets[1] + 92, struct.pack("<i", 65_537))
    _patch(golden, offsets[0], bytes(4))
    outcome = tool("recover")
    assert "recording 1: rebuilt" in outcome.out
    found = _descriptors(golden)
    assert found[1] == replace(expected[1], control_session_id=0, correlation_id=0)
    assert (found[0], found[2]) == (expected[0], expected[2])


def test_the_unfinished_replacement_of_a_catalog_is_used(tool, golden):
    expected = _descriptors(golden)
    os.rename(golden / FILE_NAME, golden / "archive.catalog.compact")
    outcome = tool("recover")
    assert outcome.out.count("entry kept") == 3
    assert _descriptors(golden) == expected


def _recovered(tool, folder):
    """Recover an archive that has lost its catalog. Returns (outcome, the recording's entry)."""
    outcome = tool("recover")
    with Catalog(folder) as catalog:
        assert catalog.damage == ""
        return outcome, catalog.entry(0)


@pytest.mark.parametrize("start", [0, 4096, 65_536 * 3 + 32, 65_536 * 1000])
def test_the_entry_of_a_recording_with_several_terms_is_exact(tool, tmp_path, start):
    end = own.write(tmp_path, 0, own.stream(LENGTHS, start), start)
    outcome, entry = _recovered(tool, tmp_path)
    expected = _as_found(own.descriptor(start=start, stop=end))
    assert _without_times(entry.descriptor) == _without_times(expected)
    assert entry.state == RecordingState.VALID
    assert "guessed: MTU 1408, start and stop time" in outcome.out
    assert tool("verify", "-a").code == 0


def test_a_term_length_that_no_frame_determines_is_a_guess(tool, tmp_path):
    end = own.write(tmp_path, 0, own.stream([1000] * 3))
    outcome, entry = _recovered(tool, tmp_path)
    assert "guessed: term length 131072" in outcome.out
    assert (entry.descriptor.stop_position, entry.descriptor.initial_term_id) == (
        end, own.INITIAL_TERM_ID,
    )  # fmt: skip
    assert tool("verify", "-a").code == 0


def test_a_fragmented_message_determines_the_mtu(tool, tmp_path):
    frames = own.stream([1376] * 3)
    position, first = frames[0]
    frames[0] = position, first[:5] + b"\x80" + first[6:]
    own.write(tmp_path, 0, frames)
    outcome, entry = _recovered(tool, tmp_path)
    assert entry.descriptor.mtu_length == 1408
    assert "MTU 1408, start" not in outcome.out.partition("guessed")[2]


def test_checksums_are_not_taken_for_session_ids(tool, tmp_path):
    end = own.write(tmp_path, 0, own.stream(LENGTHS, checksummed=True))
    outcome, entry = _recovered(tool, tmp_path)
    assert "the frames contain CRC-32 checksums instead of session ids" in outcome.out
    # Padding frames keep the session id.
    assert entry.descriptor.session_id == own.SESSION_ID
    assert entry.descriptor.stop_position == end
    assert tool("verify", "-a").code == 0


def test_with_checksums_and_without_padding_the_session_id_is_a_guess(tool, tmp_path):
    own.write(tmp_path, 0, own.stream([1000] * 3, checksummed=True))
    outcome, entry = _recovered(tool, tmp_path)
    assert entry.descriptor.session_id == 0
    assert "session id 0" in outcome.out.partition("guessed")[2]


def test_a_torn_last_frame_is_dropped(tool, tmp_path):
    frames = own.stream([1000] * 3)
    end = 3 * len(frames[0][1])
    own.write(tmp_path, 0, [*frames, (end, own.frame(end, bytes(1000)))])
    before = _segments(tmp_path)
    outcome, entry = _recovered(tool, tmp_path)
    assert entry.descriptor.stop_position == end
    assert f"the last frame, at position {end}, may be torn" in outcome.out
    assert _segments(tmp_path) == before


def test_an_invalid_frame_ends_a_recording(tool, tmp_path):
    frames = own.stream(LENGTHS)
    own.write(tmp_path, 0, frames)
    position = next(at for at, _ in frames if at > own.SEGMENT + 10_000)
    path = tmp_path / f"0-{own.SEGMENT}.rec"
    content = bytearray(path.read_bytes())
    content[position - own.SEGMENT + 16] ^= 1
    path.write_bytes(content)
    outcome, entry = _recovered(tool, tmp_path)
    assert entry.descriptor.stop_position == position
    assert f"the recording ends early: the frame at position {position}" in outcome.out


@pytest.mark.parametrize("fault", ["missing", "hole"])
def test_a_recording_with_a_gap_is_recovered_from_after_the_gap(tool, tmp_path, fault):
    end = own.write(tmp_path, 0, own.stream([992] * 600))
    path = tmp_path / f"0-{own.SEGMENT}.rec"
    if fault == "missing":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[:1024] + bytes(1024) + content[2048:])
    before = _segments(tmp_path)
    outcome, entry = _recovered(tool, tmp_path)
    assert entry.descriptor.start_position == 2 * own.SEGMENT
    assert entry.descriptor.stop_position == end
    assert "kept, but no longer part of the recording: 0-0.rec" in outcome.out
    assert _segments(tmp_path) == before


def test_an_empty_last_file_ends_a_recording_at_its_base(tool, tmp_path):
    end = own.write(tmp_path, 0, own.stream([992] * 128))
    assert end == own.SEGMENT
    (tmp_path / f"0-{own.SEGMENT}.rec").write_bytes(b"")
    _, entry = _recovered(tool, tmp_path)
    assert (entry.descriptor.start_position, entry.descriptor.stop_position) == (0, end)


def test_files_without_a_frame_are_entered_as_invalid(tool, tmp_path):
    (tmp_path / "0-0.rec").write_bytes(bytes(own.SEGMENT))
    (tmp_path / "4-131072.rec").write_bytes(b"\xff" * own.SEGMENT)
    (tmp_path / "5-0.rec").mkdir()
    outcome, entry = _recovered(tool, tmp_path)
    assert outcome.code == 2
    assert outcome.out.count("INVALID, its segment files cannot be used") == 3
    assert entry.state == RecordingState.INVALID
    with Catalog(tmp_path) as catalog:
        assert [each.recording_id for each in catalog.entries()] == [0, 4, 5]
        assert catalog.next_recording_id == 6
        assert not any(each.fault for each in catalog.entries())


def test_truncated_files_are_used(tool, tmp_path):
    end = own.write(tmp_path, 0, own.stream(LENGTHS))
    os.truncate(tmp_path / f"0-{own.SEGMENT}.rec", end - own.SEGMENT)
    _, entry = _recovered(tool, tmp_path)
    assert entry.descriptor.stop_position == end
    assert entry.descriptor.segment_file_length == own.SEGMENT
    os.truncate(tmp_path / "0-0.rec", own.SEGMENT - 4096)
    (tmp_path / f"0-{own.SEGMENT}.rec").unlink()
    (tmp_path / FILE_NAME).unlink()
    outcome, entry = _recovered(tool, tmp_path)
    assert entry.descriptor.segment_file_length == own.SEGMENT
    assert "guessed: segment length 131072" in outcome.out


def test_an_active_archive_is_not_changed(tool, golden):
    (golden / FILE_NAME).unlink()
    put_mark_file(golden, now_ms(), pid=77)
    outcome = tool("recover")
    assert outcome.code == 2
    assert "the archive is running as process 77" in outcome.err
    put_mark_file(golden, -1)
    lock = mark_file_writer.lock(golden)
    outcome = tool("recover")
    os.close(lock)
    assert outcome.code == 2
    assert "another archive has locked the directory" in outcome.err
    assert not (golden / FILE_NAME).exists()


def test_a_directory_with_nothing_to_recover_is_reported(tool, tmp_path):
    outcome = tool("recover")
    assert outcome.code == 1
    assert "expected an archive, found no archive.catalog and no segment file" in outcome.err
    shutil.rmtree(tmp_path)
    assert tool("recover").code == 1


def test_a_checksum_of_a_kept_entry_is_kept(tool, tmp_path):
    options = CatalogOptions(checksum=CRC_32)
    with CatalogWriter.create(tmp_path, options) as catalog:
        for _ in range(3):
            catalog.add(own.descriptor(stop=0))
    _patch(tmp_path, _offsets(tmp_path)[1], bytes(4))
    assert tool("recover").code == 0
    with Catalog(tmp_path) as catalog:
        for entry in catalog.entries():
            assert entry.checksum & 0xFFFFFFFF == zlib.crc32(entry.content)


def test_an_interrupted_addition_is_no_recording(tool, tmp_path):
    with CatalogWriter.create(tmp_path) as catalog:
        for _ in range(3):
            catalog.add(own.descriptor(stop=0))
    offsets = _offsets(tmp_path)
    _patch(tmp_path, offsets[2], bytes(32))
    _patch(tmp_path, 8, struct.pack("<q", 2))
    _patch(tmp_path, offsets[1], bytes(4))
    assert tool("recover").code == 0
    assert list(_descriptors(tmp_path)) == [0, 1]


def test_an_entry_without_its_header_is_valid_if_it_has_files(tool, golden):
    expected = _descriptors(golden)
    _patch(golden, _offsets(golden)[1], bytes(32))
    outcome = tool("recover")
    assert "guessed: state VALID" in outcome.out
    assert _descriptors(golden) == expected


def test_help_describes_the_command(capsys):
    from windtunnel.driver.archive.tool.program import main

    assert main(["recover", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--dry-run" in shown
    assert "archive.catalog.damaged-TIME" in shown
    main(["--help"])
    assert "recover" in capsys.readouterr().out
