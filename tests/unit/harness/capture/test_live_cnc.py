"""A driver's cnc.dat is mapped without following links, and must keep its length."""

import os

import pytest

from tests.unit.harness.capture.test_counters_process import write_cnc
from windtunnel.harness.artifact.regular_file import UnsafeFileError
from windtunnel.harness.capture.live_cnc import map_live
from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError


def test_a_complete_file_is_read_and_may_be_removed(tmp_path):
    path = tmp_path / "aeron" / "cnc.dat"
    write_cnc(path, heartbeat_ms=7)
    live = map_live(path.parent)
    live.require_whole()
    path.unlink()
    live.require_whole()
    assert live.cnc.heartbeat.tolist() == [7]


def test_a_shorter_file_is_reported_before_it_is_read(tmp_path):
    path = tmp_path / "aeron" / "cnc.dat"
    length = write_cnc(path).size
    live = map_live(path.parent)
    os.truncate(path, length - 1)
    with pytest.raises(CncFileError, match=f"^expected {length} bytes, found {length - 1}: it was"):
        live.require_whole()
    os.truncate(path, length + 1)
    live.require_whole()


@pytest.mark.parametrize("length", [None, 0, 100])
def test_a_file_that_does_not_exist_yet_is_awaited(tmp_path, length):
    folder = tmp_path / "aeron"
    folder.mkdir()
    if length is not None:
        (folder / "cnc.dat").write_bytes(bytes(length))
    assert map_live(folder) is None
    assert map_live(tmp_path / "absent") is None


def test_a_link_is_not_followed(tmp_path):
    write_cnc(tmp_path / "other" / "cnc.dat")
    (tmp_path / "aeron").mkdir()
    (tmp_path / "aeron" / "cnc.dat").symlink_to(tmp_path / "other" / "cnc.dat")
    with pytest.raises(UnsafeFileError):
        map_live(tmp_path / "aeron")
