"""The verify, checksum and delete-orphans commands, with the golden archive and every kind of
fault.
"""

import errno
import io
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage import frame_walk
from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from windtunnel.driver.archive.storage.checksum import CRC_32, CRC_32C

WORD = {"open": "open", "preadv": "read"}
LENGTHS = [1000, 200, 1376, 31, 700] * 60


def _states(folder):
    with Catalog(folder) as catalog:
        return [RecordingState(entry.state).name for entry in catalog.entries()]


def _stop(folder, recording_id=0):
    with Catalog(folder) as catalog:
        return catalog.entry(recording_id).descriptor.stop_position


def _patch(path, at, content):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(content)


@pytest.fixture
def ours(tmp_path):
    """An archive with one recording of more than two segments. Returns (folder, end)."""
    end = own.write(tmp_path, 0, own.stream(LENGTHS))
    assert end > 131_072
    with CatalogWriter.create(tmp_path, CatalogOptions(checksum=CRC_32C)) as catalog:
        catalog.add(own.descriptor(stop=end))
    return tmp_path, end


@pytest.mark.parametrize("words", [[], ["-a"], ["--read-only", "-a"], [2, "-a"]])
def test_the_golden_archive_is_valid_and_not_changed(tool, golden, words):
    before = {path.name: path.read_bytes() for path in golden.iterdir()}
    outcome = tool("verify", *words)
    assert (outcome.code, outcome.err) == (0, "")
    ids = [2] if 2 in words else [0, 1, 2]
    assert outcome.out == "".join(f"recording {each}: OK\n" for each in ids)
    assert {path.name: path.read_bytes() for path in golden.iterdir()} == before


def test_written_checksums_are_verified(tool, golden):
    sound = tool("verify", "-a", "--checksum", "CRC-32C", "--read-only")
    assert sound.code == 2
    assert sound.out.count("the CRC-32C checksum of the catalog entry does not match") == 3
    assert tool("checksum", "CRC-32C", "-a").code == 0
    assert tool("verify", "-a", "--checksum", "CRC-32C").code == 0
    path = golden / "1-131072.rec"
    content = path.read_bytes()
    _patch(path, 40, bytes([content[40] ^ 1]))
    assert tool("verify", "-a").code == 0
    outcome = tool("verify", "-a", "--checksum", "CRC-32C")
    assert outcome.code == 2
    assert "1-131072.rec: invalid frame at position 131072: checksum" in outcome.out
    assert _states(golden) == ["VALID", "INVALID", "VALID"]
    _patch(path, 40, content[40:41])
    assert "recording 1: OK (marked valid)" in tool("verify", "-a", "--checksum", "CRC-32C").out
    assert tool("verify", "-a", "--checksum", "CRC-32").code == 2


def test_a_recording_without_files_gets_no_checksums(tool, golden):
    for path in golden.glob("0-*.rec"):
        path.unlink()
    outcome = tool("checksum", "CRC-32")
    assert outcome.code == 2
    assert outcome.err == "recording 0: expected segment files, found none\n"
    assert outcome.out.count("CRC-32 checksums written") == 2


def test_only_the_last_file_is_verified_unless_all_are_requested(tool, golden):
    _patch(golden / "1-0.rec", 8, b"\1")
    assert tool("verify").code == 0
    outcome = tool("verify", "-a")
    assert outcome.code == 2
    assert "1-0.rec: invalid frame at position 0: term offset" in outcome.out


def test_a_hole_in_a_file_is_found(tool, golden):
    _patch(golden / "1-0.rec", 0, bytes(131_072))
    outcome = tool("verify", "-a")
    assert outcome.code == 2
    assert "1-0.rec: the data ends at position 0, expected 131072" in outcome.out


def test_checksums_are_written_for_any_read_size(tool, golden, monkeypatch):
    monkeypatch.setattr(frame_walk, "CHUNK_LENGTH", 4096)
    assert tool("checksum", "CRC-32", "-a").code == 0
    monkeypatch.undo()
    assert tool("verify", "-a", "--checksum", "CRC-32").code == 0


@pytest.mark.parametrize("name", ["1-0.rec", "1-262144.rec", "1-393216.rec"])
def test_a_missing_file_is_found_and_affects_no_other_recording(tool, golden, name):
    (golden / name).unlink()
    outcome = tool("verify")
    assert outcome.code == 2
    assert outcome.out == (
        f"recording 0: OK\nrecording 1: NOT VALID: missing segment file {name} "
        "(marked invalid)\nrecording 2: OK\n"
    )
    assert tool("count").out == "2\n"


def test_detached_files_may_be_missing(tool, golden):
    (golden / "2-0.rec").unlink()
    (golden / "2-131072.rec").unlink()
    assert tool("verify", "-a").code == 0


def test_a_file_outside_the_recording_is_ignored(tool, golden):
    shutil.copy(golden / "0-0.rec", golden / "0-524288.rec")
    assert tool("verify", "-a").code == 0
    assert _stop(golden) == 268448


def test_a_recording_without_a_stop_position_gets_one(tool, ours):
    folder, end = ours
    with CatalogWriter(folder) as catalog:
        catalog.record_stop(0, -1, -1)
    assert tool("verify", "--read-only").out == "recording 0: OK\n"
    assert _stop(folder) == -1
    outcome = tool("verify")
    assert outcome.out == f"recording 0: OK (stop position -1 changed to {end})\n"
    assert _stop(folder) == end


def test_a_possibly_torn_last_frame_is_truncated_only_with_consent(tool, ours):
    folder, end = ours
    last = own.stream(LENGTHS)[-1][0]
    path = folder / "0-131072.rec"
    _patch(path, last - 131_072, own.frame(last, own.payload(0, 1376))[:40].ljust(1408, b"\0"))
    assert last // 4096 != (last + 1407) // 4096
    kept = tool("verify", "--keep", "--json").document["recordings"][0]
    assert kept["is_whole"] is False
    assert kept["fault"] == f"the last frame, at position {last}, may be torn"
    assert _states(folder) == ["INVALID"]
    outcome = tool("verify", "--truncate")
    assert (
        f"truncated at {last}; stop position {end} changed to {last}; marked valid" in outcome.out
    )
    assert path.stat().st_size == own.SEGMENT
    assert not any(path.read_bytes()[last - 131_072 :])
    assert tool("verify", "-a").out == "recording 0: OK\n"


def test_a_stop_position_after_the_data_is_changed_only_with_consent(tool, ours):
    folder, end = ours
    last = own.stream(LENGTHS)[-1][0]
    _patch(folder / "0-131072.rec", last - 131_072, bytes(4))
    outcome = tool("verify", "--keep")
    assert outcome.code == 2
    assert f"the data ends at {last}, before the stop position {end}" in outcome.out
    assert _stop(folder) == end
    assert tool("verify", "--truncate").code == 0
    assert _stop(folder) == last


@pytest.mark.parametrize(
    ("start", "stop", "fault"),
    [
        (-32, 64, "start position -32"),
        (1, 64, "start position 1"),
        (64, 32, "stop position 32"),
        (0, 33, "stop position 33"),
        (0, 1 << 40, "missing segment file"),
    ],
)
def test_invalid_positions_are_found(tool, tmp_path, start, stop, fault):
    own.write(tmp_path, 0, own.stream([1000]))
    with CatalogWriter.create(tmp_path) as catalog:
        catalog.add(own.descriptor(start=start, stop=stop))
    outcome = tool("verify")
    assert outcome.code == 2
    assert fault in outcome.out


def test_only_orphans_are_deleted(tool, golden):
    for name in ("0-524288.rec", "1-junk.rec", "other.rec", "0-0.recs"):
        (golden / name).write_bytes(b"")
    before = set(os.listdir(golden))
    outcome = tool("delete-orphans", "--yes")
    assert outcome.out == "0-524288.rec\n1-junk.rec\n2-0.rec\n2-131072.rec\n4 files deleted\n"
    assert before - set(os.listdir(golden)) == set(outcome.out.split("\n")[:4])
    assert tool("delete-orphans", "--yes").out == "0 files deleted\n"
    assert tool("verify", "-a").code == 0


@pytest.mark.parametrize("verb", ["verify", "delete-orphans --yes", "mark-invalid 0", "describe"])
def test_files_of_a_recording_without_an_entry_are_damage(tool, golden, verb):
    (golden / "7-0.rec").write_bytes(b"")
    outcome = tool(*verb.split())
    assert outcome.code == 2
    assert "found none for 1 segment files of 1 recordings: 7-0.rec" in outcome.err
    assert f"`windtunnel archive recover --dir {golden}`" in outcome.err
    assert ("recording 2: VALID" in outcome.out) == (verb == "describe")
    assert _states(golden) == ["VALID"] * 3
    assert (golden / "7-0.rec").exists()


@pytest.mark.parametrize("verb", ["verify", "verify --read-only", "describe", "count", "pid"])
def test_a_missing_catalog_beside_recordings_is_damage(tool, golden, verb):
    (golden / FILE_NAME).unlink()
    outcome = tool(*verb.split())
    assert outcome.code == 2
    assert "expected archive.catalog next to 14 segment files of 3 recordings" in outcome.err
    assert f"`windtunnel archive recover --dir {golden}`" in outcome.err


@pytest.mark.parametrize("verb", ["verify", "verify --read-only", "describe"])
def test_a_length_of_zero_in_the_catalog_is_reported(tool, golden, verb):
    _patch(golden / FILE_NAME, 288, bytes(4))
    outcome = tool(*verb.split())
    assert outcome.code == 2
    assert "expected an entry or zeros at 288" in outcome.err
    assert f"`windtunnel archive recover --dir {golden}`" in outcome.err


def test_orphans_of_other_or_invalid_recordings_are_not_deleted(tool, golden):
    assert tool("delete-orphans", 0, "--yes").out == "0 files deleted\n"
    tool("mark-invalid", 2)
    assert tool("delete-orphans", "--yes").out == "0 files deleted\n"


def test_nothing_is_deleted_without_confirmation(tool, golden, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    outcome = tool("delete-orphans")
    assert outcome.code == 130
    assert "expected an answer on stdin, found its end; answer with --yes" in outcome.err
    assert (golden / "2-0.rec").exists()


def test_a_read_only_directory_is_reported(tool, golden, monkeypatch):
    real = os.open

    def refuse(path, flags, *rest, **named):
        # Only the archive is read-only, not the cache of compiled kernels.
        is_ours = Path(path).is_relative_to(golden)
        if is_ours and flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    outcome = tool("verify")
    assert outcome.code == 2
    assert "archive.catalog: Read-only file system; use --read-only to check" in outcome.err
    assert tool("verify", "--read-only").code == 0
    assert tool("mark-invalid", 0).code == 2


def _catalog_of_another_version(golden, monkeypatch):
    _patch(golden / FILE_NAME, 0, (2 << 16).to_bytes(4, "little"))


def _catalog_link(golden, monkeypatch):
    (golden / FILE_NAME).rename(golden / "elsewhere")
    (golden / FILE_NAME).symlink_to(golden / "elsewhere")


def _unreadable_catalog(golden, monkeypatch):
    real = os.open

    def refuse(path, *rest, **named):
        if Path(path).name == FILE_NAME:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (_catalog_of_another_version, "expected storage version 3.x, found 2.0.0"),
        (_catalog_link, "expected a regular file, found a symbolic link"),
        (_unreadable_catalog, "archive.catalog: Permission denied"),
    ],
)
def test_read_only_is_advised_only_if_it_helps(tool, golden, monkeypatch, damage, text):
    damage(golden, monkeypatch)
    outcomes = [tool("verify"), tool("verify", "--read-only")]
    assert [outcome.code for outcome in outcomes] == [2, 2]
    assert all(text in outcome.err for outcome in outcomes), outcomes
    assert "--read-only" not in outcomes[0].err


@pytest.mark.parametrize("call", ["open", "preadv"])
def test_a_read_error_is_no_fault_of_the_recording(tool, golden, monkeypatch, call):
    unreadable = golden / "1-393216.rec"
    number = errno.EACCES if call == "open" else errno.EIO
    real = getattr(os, call)

    def refuse(file, *rest, **named):
        path = Path(os.readlink(f"/proc/self/fd/{file}")) if isinstance(file, int) else Path(file)
        if path == unreadable:
            raise OSError(number, os.strerror(number))
        return real(file, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        outcome = tool("verify")
        as_json = json.loads(tool("verify", "--json").out)
    assert outcome.code == 2
    lines = outcome.out.splitlines()
    assert (lines[0], lines[2]) == ("recording 0: OK", "recording 2: OK")
    assert lines[1].startswith(f"recording 1: NOT VERIFIED: cannot {WORD[call]} {unreadable}")
    assert lines[1].endswith(os.strerror(number))
    assert [each["is_whole"] for each in as_json["recordings"]] == [True, None, True]
    assert _states(golden) == ["VALID"] * 3
    assert tool("verify").code == 0


def test_a_link_in_place_of_a_segment_file_is_a_fault(tool, golden):
    (golden / "1-393216.rec").rename(golden / "other")
    (golden / "1-393216.rec").symlink_to(golden / "other")
    assert tool("verify").code == 2
    assert _states(golden) == ["VALID", "INVALID", "VALID"]


def test_the_checksum_of_an_entry_is_verified(tool, ours):
    folder, _ = ours
    with Catalog(folder) as catalog:
        assert catalog.entry(0).is_checksum_right(CRC_32C)
        assert not catalog.entry(0).is_checksum_right(CRC_32)
    _patch(folder / FILE_NAME, 32 + 80, (5).to_bytes(8, "little"))
    outcome = tool("verify", "--checksum", "CRC-32C")
    assert outcome.code == 2
