"""Readings of a cnc.dat of arbitrary content."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.unit.harness.capture.test_counters_process import write_cnc
from windtunnel.harness.capture.cnc_watch import CncSight, look
from windtunnel.harness.dissect.driver_files.cnc_file import HEADER


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "aeron"


def change(directory: Path, **fields: int) -> None:
    mapped = np.memmap(directory / "cnc.dat", dtype=np.uint8, mode="r+")
    header = mapped[: HEADER.itemsize].view(HEADER)
    for name, value in fields.items():
        header[name] = value


def test_a_driver_shows_its_version_heartbeat_and_timeout(directory):
    write_cnc(directory / "cnc.dat", heartbeat_ms=17)
    change(directory, client_liveness_timeout_ns=7)
    assert look(directory) == CncSight("", 512, 17, 7)


def test_a_file_that_does_not_exist_yet_is_no_error(directory):
    assert look(directory).problem == "cnc.dat does not exist"
    write_cnc(directory / "cnc.dat", version=0)
    assert look(directory).problem == "cnc.dat has no version yet"
    (directory / "cnc.dat").write_bytes(b"")
    assert look(directory).problem == "cnc.dat has no version yet"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"cnc_version": 1 << 16}, "cnc.dat: cnc version: expected major version 0, found 0x10000"),
        ({"cnc_version": -1}, "cnc.dat: cnc version: expected major version 0, found -0x1"),
        ({"to_driver_length": -1}, "cnc.dat: section lengths: expected at least 0"),
        ({"to_driver_length": 767}, "cnc.dat: section lengths: expected at least 0, and 768"),
        ({"values_length": 2**31 - 1}, "bytes for its sections, found"),
    ],
)
def test_a_hostile_header_is_named(directory, fields, problem):
    write_cnc(directory / "cnc.dat")
    change(directory, **fields)
    assert problem in look(directory).problem


def test_links_and_fifos_are_not_opened(directory, tmp_path):
    write_cnc(tmp_path / "other" / "cnc.dat")
    directory.symlink_to(tmp_path / "other")
    assert "found a symbolic link" in look(directory).problem
    directory.unlink()
    directory.mkdir()
    (directory / "cnc.dat").symlink_to(tmp_path / "other" / "cnc.dat")
    assert "found a symbolic link" in look(directory).problem
    (directory / "cnc.dat").unlink()
    os.mkfifo(directory / "cnc.dat")
    assert "found a FIFO" in look(directory).problem
    (directory / "cnc.dat").unlink()
    (directory / "cnc.dat").mkdir()
    assert "found a directory" in look(directory).problem
