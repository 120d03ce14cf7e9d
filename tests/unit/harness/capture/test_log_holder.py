"""Log buffers are opened when they appear, copied with their holes, and listed."""

import os
import shutil
from pathlib import Path

import pytest

from windtunnel.harness.artifact.host.log_index import LogFacts, read_log_index
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.capture import log_holder
from windtunnel.harness.capture.log_holder import LogHolder

LENGTH = 3 * 65536 + 4096


@pytest.fixture
def directory(tmp_path) -> Path:
    return tmp_path / "aeron"


@pytest.fixture
def files(tmp_path) -> HostDir:
    return HostDir(tmp_path / "out")


def make_log(directory: Path, name: str, length: int = LENGTH) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(length)
        file.seek(length // 2)
        file.write(b"in the middle")
    return path


def hold(directory: Path, files: HostDir) -> list[LogFacts]:
    holder = LogHolder(directory)
    holder.poll()
    holder.copy(files)
    return read_log_index(files.log_index)


def test_a_log_is_copied_byte_for_byte_also_when_its_driver_has_removed_it(directory, files):
    path = make_log(directory, "images/23.logbuffer")
    content = path.read_bytes()
    holder = LogHolder(directory)
    holder.poll()
    shutil.rmtree(directory)
    holder.poll()
    holder.copy(files)
    assert read_log_index(files.log_index) == [LogFacts("images", 23, LENGTH, "")]
    copied = files.log_buffer("images", 23)
    assert copied.read_bytes() == content
    assert copied.stat().st_blocks * 512 < LENGTH


def test_bytes_written_after_the_log_was_opened_are_in_the_copy(directory, files):
    path = make_log(directory, "publications/-7.logbuffer")
    holder = LogHolder(directory)
    holder.poll()
    with path.open("r+b") as file:
        file.write(b"late")
    holder.copy(files)
    assert files.log_buffer("publications", -7).read_bytes()[:4] == b"late"


def test_other_files_are_ignored_and_without_a_driver_there_are_no_logs(directory, files):
    assert hold(directory, files) == []
    make_log(directory, "images/23.logbuffer.tmp")
    make_log(directory, "images/readme")
    make_log(directory, "cnc.logbuffer")
    assert hold(directory, files) == []


def test_a_log_that_is_too_long_is_reported_and_not_copied(directory, files, monkeypatch):
    monkeypatch.setattr(log_holder, "LOG_LENGTH_MAX", LENGTH)
    make_log(directory, "images/1.logbuffer")
    make_log(directory, "images/2.logbuffer", LENGTH + 4096)
    first, second = hold(directory, files)
    assert first.left_out == ""
    assert second.left_out == f"expected at most {LENGTH} bytes, found {LENGTH + 4096}"
    assert not files.log_buffer("images", 2).exists()


def test_the_bytes_of_a_host_are_limited(directory, files, monkeypatch):
    monkeypatch.setattr(log_holder, "COPIED_BYTES_MAX", log_holder.BLOCK_LENGTH)
    for number in (1, 2):
        make_log(directory, f"images/{number}.logbuffer")
    first, second = hold(directory, files)
    assert (first.left_out, files.log_buffer("images", 1).exists()) == ("", True)
    assert "the host's logs exceed the limit of" in second.left_out
    assert not files.log_buffer("images", 2).exists()


def test_the_number_of_open_logs_is_limited(directory, files, monkeypatch):
    monkeypatch.setattr(log_holder, "HELD_MAX", 1)
    before = len(os.listdir("/proc/self/fd"))
    for number in (1, 2):
        make_log(directory, f"images/{number}.logbuffer")
    reported = hold(directory, files)
    assert sorted(each.left_out for each in reported) == [
        "",
        "the limit of 1 open logs was reached",
    ]
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("what", ["folder", "link", "fifo", "name"])
def test_nothing_but_logs_of_the_driver_is_opened(directory, files, tmp_path, what):
    elsewhere = make_log(tmp_path / "elsewhere", "images/23.logbuffer")
    make_log(directory, "publications/5.logbuffer")
    images = directory / "images"
    if what == "folder":
        images.symlink_to(elsewhere.parent)
    else:
        images.mkdir()
    if what == "link":
        (images / "23.logbuffer").symlink_to(elsewhere)
    elif what == "fifo":
        os.mkfifo(images / "23.logbuffer")
    elif what == "name":
        (images / "--5.logbuffer").write_bytes(b"x")
    assert hold(directory, files) == [LogFacts("publications", 5, LENGTH, "")]
