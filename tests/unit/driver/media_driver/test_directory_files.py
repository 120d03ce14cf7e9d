"""The files in a driver's directory: resolved, opened, classified and deleted."""

import os

import pytest

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.media_driver.directory_files import delete_files, entries, opened, real_path


def test_a_chain_of_own_links_is_followed_relative_to_each_link(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "first").symlink_to("../second")
    (tmp_path / "second").symlink_to(tmp_path / "end")
    assert real_path(tmp_path / "one" / "first").resolve() == tmp_path / "end"
    (tmp_path / "end").mkdir()
    assert real_path(tmp_path / "one" / "first").resolve() == tmp_path / "end"


def test_a_path_is_not_opened_through_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with opened(tmp_path / "real") as root:
        assert os.listdir(root) == []
    with (
        pytest.raises(StorageError, match=r"cannot open .*link \(AERON_DIR\)"),
        opened(tmp_path / "link"),
    ):
        pass


def test_a_folder_follows_its_logs(tmp_path):
    for log in ("images/1.logbuffer", "publications/2.logbuffer", "publications/x"):
        (tmp_path / log).parent.mkdir(exist_ok=True)
        (tmp_path / log).touch()
    (tmp_path / "cnc.dat").touch()
    with opened(tmp_path) as root:
        found = [(each.path, each.is_folder, bool(each.fault)) for each in entries(root)]
    assert found == [
        ("cnc.dat", False, False),
        ("images/1.logbuffer", False, False),
        ("images", True, False),
        ("publications/2.logbuffer", False, False),
        ("publications/x", False, True),
        ("publications", True, False),
    ]


def test_a_log_that_is_deleted_meanwhile_is_no_error(tmp_path):
    (tmp_path / "images").mkdir()
    for log in ("1.logbuffer", "2.logbuffer"):
        (tmp_path / "images" / log).touch()
    with opened(tmp_path) as root:
        found = entries(root)
        assert next(found).path == "images/1.logbuffer"
        (tmp_path / "images" / "2.logbuffer").unlink()
        assert [each.fault for each in found] == ["", ""]


def test_deletion_stays_in_the_opened_directory_when_its_name_is_moved(tmp_path):
    for name in ("old", "victim"):
        (tmp_path / name / "images").mkdir(parents=True)
        (tmp_path / name / "images" / "1.logbuffer").touch()
    with opened(tmp_path / "old") as root:
        (tmp_path / "old").rename(tmp_path / "moved")
        (tmp_path / "old").symlink_to("victim")
        delete_files(root)
    assert list((tmp_path / "moved").iterdir()) == []
    assert (tmp_path / "victim" / "images" / "1.logbuffer").exists()


def test_an_error_of_deletion_names_the_file(tmp_path, monkeypatch):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.logbuffer").touch()

    def refuse(path, **options):
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(os, "unlink", refuse)
    with opened(tmp_path) as root, pytest.raises(PermissionError, match=r"images/1[.]logbuffer"):
        delete_files(root)


def test_descriptors_are_closed(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "x").touch()
    before = os.listdir("/proc/self/fd")
    with opened(tmp_path) as root:
        assert next(entries(root)).fault
        delete_files(root)
    assert os.listdir("/proc/self/fd") == before
