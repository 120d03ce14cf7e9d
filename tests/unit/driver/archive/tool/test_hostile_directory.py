"""An untrusted archive directory: the tool follows no link in it and waits for no FIFO."""

import os
import stat

import pytest

from tests.unit.driver.archive.tool.outcome import put_mark_file
from windtunnel.driver.archive.storage import mark_file
from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.catalog_writer import REPLACEMENT_NAME
from windtunnel.driver.files.regular_file import open_regular, read_regular, truncate_regular

COMMANDS = (
    ("describe", "--all"), ("dump", "--limit", 1), ("errors",), ("pid",), ("count",),
    ("capacity", 1 << 22), ("verify", "-a", "--truncate"), ("verify", "-a", "--read-only"),
    ("checksum", "CRC-32C", "-a"), ("delete-orphans", "--yes"), ("mark-invalid", 1), ("recover",),
)  # fmt: skip
NAMES = (FILE_NAME, "1-131072.rec", "2-786432.rec", mark_file.FILE_NAME, mark_file.LINK_NAME)
pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def outside(tmp_path_factory):
    """A file outside of the archive with the content of a file in it."""
    return tmp_path_factory.mktemp("elsewhere") / "victim"


@pytest.fixture
def archive(golden):
    put_mark_file(golden, 1)
    (golden / mark_file.LINK_NAME).write_bytes(os.fsencode(golden))
    return golden


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_file_outside_the_archive_is_not_written_through_a_link(
    tool, archive, outside, words, name
):
    (archive / name).rename(outside)
    content = outside.read_bytes()
    (archive / name).symlink_to(outside)
    outcome = tool(*words)
    assert outcome.code in (0, 1, 2), outcome
    assert outside.read_bytes() == content
    assert (archive / name).is_symlink() or (words[0], name) == ("recover", FILE_NAME)


@pytest.mark.parametrize(("words", "name"), [
    (("describe",), FILE_NAME), (("verify", "-a", "--read-only"), "1-131072.rec"),
    (("dump", 1), "1-0.rec"), (("pid",), mark_file.FILE_NAME), (("pid",), mark_file.LINK_NAME),
])  # fmt: skip
def test_a_linked_file_is_rejected_by_name(tool, archive, outside, words, name):
    (archive / name).rename(outside)
    (archive / name).symlink_to(outside)
    outcome = tool(*words)
    assert outcome.code == 2
    text = "expected a regular file, found a symbolic link"
    assert text in outcome.out + outcome.err
    assert name in outcome.out + outcome.err


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_fifo_is_not_waited_for(tool, archive, words, name):
    (archive / name).unlink()
    os.mkfifo(archive / name)
    assert tool(*words).code in (0, 1, 2)
    assert stat.S_ISFIFO((archive / name).lstat().st_mode) or words[0] == "recover"


def test_a_catalog_replacement_is_not_written_through_a_planted_link(tool, archive, outside):
    outside.write_bytes(b"not an archive's")
    (archive / REPLACEMENT_NAME).symlink_to(outside)
    assert tool("capacity", 1 << 22).code == 0
    assert outside.read_bytes() == b"not an archive's"
    assert not (archive / FILE_NAME).is_symlink()
    with Catalog(archive) as catalog:
        assert len(catalog.recording_ids) == 3


def test_a_regular_file_is_opened_read_and_truncated(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    os.close(open_regular(path))
    assert read_regular(path) == b"0123456789"
    assert read_regular(path, 2, 3) == b"234"
    truncate_regular(path, 4, 6)
    assert path.read_bytes() == b"0123\0\0"


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
@pytest.mark.parametrize(("kind", "text"), [
    ("link", "a symbolic link"), ("fifo", "a FIFO"), ("folder", "a directory"),
])  # fmt: skip
def test_anything_but_a_regular_file_is_rejected(tmp_path, kind, text, flags):
    path = tmp_path / "file"
    if kind == "link":
        path.symlink_to("/dev/null")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(OSError, match=f"expected a regular file, found {text}"):
        open_regular(path, flags)
