"""The payload's bytes depend on the files alone, and later changes do not affect the store."""

import os
import tarfile

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.run import payload


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    for name, text in {
        "b.py": "b = 2\n",
        "a.py": "a = 1\n",
        "pack/c.py": "c = 3\n",
        "pack/data.bin": "no source",
        "site-packages/d.py": "not of the library",
        "__pycache__/a.py": "not of the library",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_archive_holds_the_sources_in_order_without_owner_or_time(library, tmp_path):
    created = payload.default_payload(tmp_path / "store", library)
    with tarfile.open(created.path) as archive:
        entries = archive.getmembers()
    assert [entry.name for entry in entries] == ["a.py", "b.py", "pack/c.py"]
    assert {(e.mtime, e.uid, e.gid, e.uname, e.gname) for e in entries} == {(0, 0, 0, "", "")}
    assert created.length == created.path.stat().st_size
    assert created.sha256 == payload.file_sha256(created.path)
    assert created.source == ""


def test_the_same_library_gives_the_same_bytes_whenever_its_files_were_written(library, tmp_path):
    first = payload.default_payload(tmp_path / "store", library)
    os.utime(library / "a.py", (1, 1))
    second = payload.default_payload(tmp_path / "store", library)
    assert first.path != second.path
    assert first.sha256 == second.sha256


def test_the_archive_is_created_once(library, tmp_path):
    first = payload.default_payload(tmp_path / "store", library)
    before = first.path.stat().st_mtime_ns
    assert payload.default_payload(tmp_path / "store", library) == first
    assert first.path.stat().st_mtime_ns == before


def test_the_running_pythons_library_is_there(tmp_path):
    created = payload.default_payload(tmp_path)
    assert created.length > 5_000_000
    with tarfile.open(created.path) as archive:
        assert "json/__init__.py" in archive.getnames()


def test_a_library_without_sources_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(LabError, match="no Python source files"):
        payload.default_payload(tmp_path / "store", tmp_path / "empty")


def test_a_users_file_is_copied_so_that_later_changes_do_not_reach_a_run(tmp_path):
    source = tmp_path / "mine.dat"
    source.write_bytes(b"some bytes")
    created = payload.file_payload(tmp_path / "store", source)
    source.write_bytes(b"other bytes!")
    assert created.path.read_bytes() == b"some bytes"
    assert (created.length, created.source) == (10, str(source))
    assert payload.file_payload(tmp_path / "store", source).path != created.path


def test_no_half_made_file_stays_in_the_store(library, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(payload, "write_archive", fail)
    with pytest.raises(OSError, match="disk full"):
        payload.default_payload(tmp_path / "store", library)
    assert list((tmp_path / "store").iterdir()) == []


def test_an_empty_or_missing_file_is_refused(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(LabError, match="at least one byte"):
        payload.file_payload(tmp_path / "store", tmp_path / "empty")
    with pytest.raises(LabError, match="no such file"):
        payload.file_payload(tmp_path / "store", tmp_path / "missing")
