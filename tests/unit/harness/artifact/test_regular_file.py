"""Files of untrusted folders are opened and replaced without following links."""

import errno
import os
import resource
import socket
from pathlib import PurePath

import pytest

from windtunnel.harness.artifact import regular_file
from windtunnel.harness.artifact.regular_file import UnsafeFileError


def made_link(path, target):
    target.write_text("secret")
    path.symlink_to(target)


def made_socket(path, target):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


SPECIAL = {
    "a symbolic link": made_link,
    "a FIFO": lambda path, _: os.mkfifo(path),
    "a directory": lambda path, _: path.mkdir(),
    "a socket": made_socket,
}
READERS = {
    "open": regular_file.open_regular,
    "size": regular_file.size_of,
    "text": regular_file.read_text,
    "map": regular_file.map_bytes,
}


@pytest.mark.parametrize("found", SPECIAL)
@pytest.mark.parametrize("reader", READERS)
def test_only_a_regular_file_is_read(reader, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SPECIAL[found](tmp_path / "file", tmp_path / "target")
    with pytest.raises(UnsafeFileError, match=f"file: expected a regular file, found {found}"):
        READERS[reader](tmp_path / "file")


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_does_not_exist_is_a_file_not_found_error(reader, tmp_path):
    with pytest.raises(FileNotFoundError):
        READERS[reader](tmp_path / "file")


def test_a_regular_file_is_read(tmp_path):
    file = tmp_path / "file"
    file.write_text("größe")
    assert regular_file.read_text(file) == "größe"
    assert regular_file.map_bytes(file).tobytes() == "größe".encode()
    assert regular_file.size_of(file) == 7
    file.write_text("")
    assert regular_file.map_bytes(file).tobytes() == b""


def test_a_text_is_read_up_to_its_bound(tmp_path):
    file = tmp_path / "file"
    file.write_text("12345")
    assert regular_file.read_text(file, max_bytes=5) == "12345"
    with pytest.raises(UnsafeFileError, match="expected at most 4 bytes, found more"):
        regular_file.read_text(file, max_bytes=4)


def test_a_link_of_the_final_name_is_replaced_and_not_followed(tmp_path):
    victim, file = tmp_path / "victim", tmp_path / "folder" / "file"
    file.parent.mkdir()
    made_link(file, victim)
    regular_file.replace_file(file, "new")
    assert victim.read_text() == "secret"
    assert not file.is_symlink()
    assert file.read_text() == "new"
    assert [each.name for each in file.parent.iterdir()] == ["file"]


def test_a_planted_link_is_not_written_through_even_if_its_random_name_was_guessed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(regular_file.secrets, "token_hex", lambda _: "00")
    made_link(tmp_path / ".00.new", tmp_path / "victim")
    with pytest.raises(FileExistsError):
        regular_file.replace_file(tmp_path / "file", "new")
    assert (tmp_path / "victim").read_text() == "secret"


def test_no_file_is_written_through_a_linked_directory(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "folder").symlink_to("victim")
    with pytest.raises(UnsafeFileError, match="expected a directory, found a symbolic link"):
        regular_file.replace_file(tmp_path / "folder" / "file", "new")
    assert list((tmp_path / "victim").iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        regular_file.replace_file(file, "\ud800")
    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.fixture
def files_of_ten_bytes():
    """A limit of the length of files, which fails a write as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_error_of_writing_names_the_file_and_leaves_nothing(tmp_path, files_of_ten_bytes):
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(OSError, match=f"File too large: '{file}'"):
        regular_file.replace_file(file, "x" * 11)
    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    with pytest.raises(OSError, match=f"File too large: '{file}'"), regular_file.naming(file):
        file.write_text("x" * 11)


def test_an_error_of_a_read_only_file_system_names_the_file(tmp_path, monkeypatch):
    real = os.open

    def refuse(path, flags, *rest, **named):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system", path)
        return real(path, flags, *rest, **named)

    def refuse_unlink(path, **_):
        raise OSError(errno.EROFS, "Read-only file system", path)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "unlink", refuse_unlink)
    file = tmp_path / "file"
    with pytest.raises(OSError, match=f"Read-only file system: '{file}'"):
        regular_file.replace_file(file, "new")


@pytest.mark.parametrize("link", ["hosts", "run/hosts"])
def test_a_folder_with_a_linked_folder_in_it_is_refused(link, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "folder" / "run").mkdir(parents=True)
    (tmp_path / "folder" / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFileError, match="hosts: expected a directory, found a symbolic link"):
        regular_file.untrusted_folder(tmp_path / "folder")


def test_a_folder_that_was_named_through_a_link_is_opened_by_its_real_path(tmp_path):
    real = tmp_path.resolve() / "real"
    (real / "run" / "hosts").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    assert regular_file.untrusted_folder(tmp_path / "link" / "run") == real / "run"
    assert regular_file.untrusted_folder(real / "run") == real / "run"
    assert regular_file.untrusted_folder(real / "none") == real / "none"


def test_a_folder_is_opened_component_by_component(tmp_path):
    (tmp_path / "real" / "dev" / "shm").mkdir(parents=True)
    (tmp_path / "root").symlink_to("real")
    with regular_file.folder_below(tmp_path / "root", PurePath("/dev/shm")) as folder:
        (tmp_path / "real" / "dev").rename(tmp_path / "real" / "old")
        (folder / "file").write_text("x")
    assert not folder.exists()
    assert (tmp_path / "real" / "old" / "shm" / "file").read_text() == "x"
    with (
        pytest.raises(FileNotFoundError, match="root/dev"),
        regular_file.folder_below(tmp_path / "root", PurePath("/dev/shm")),
    ):
        pass


@pytest.mark.parametrize("link", ["dev", "dev/shm", "dev/shm/aeron"])
@pytest.mark.parametrize("target", ["secret", "/etc"])
def test_no_component_below_a_root_is_a_link(link, target, tmp_path):
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "secret" / "shm" / "aeron").mkdir(parents=True)
    (tmp_path / link).symlink_to(target)
    open_files = set(os.listdir("/proc/self/fd"))
    with (
        pytest.raises(UnsafeFileError, match=f"{link}: expected a directory, found a symbolic"),
        regular_file.folder_below(tmp_path, PurePath("/dev/shm/aeron")),
    ):
        pass
    assert set(os.listdir("/proc/self/fd")) == open_files


def test_a_path_does_not_lead_out_of_its_root(tmp_path):
    with (
        pytest.raises(UnsafeFileError, match="expected a path without"),
        regular_file.folder_below(tmp_path, PurePath("/dev/../../x")),
    ):
        pass
