"""The sampling process, on real Aeron's cnc file: it waits, samples, and writes its documents."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from windtunnel.harness.artifact.host.counter_sample import read_counters, read_samples
from windtunnel.harness.artifact.host.host_facts import read_error_log
from windtunnel.harness.artifact.host.pressure import Pressure
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.capture.counters import follow
from windtunnel.harness.capture.live_cnc import map_live
from windtunnel.harness.capture.log_holder import LogHolder
from windtunnel.harness.capture.loss_report_copy import LossReportCopy
from windtunnel.harness.capture.shutdown_signal import ShutdownSignal
from windtunnel.harness.dissect.driver_files import cnc_file
from windtunnel.harness.verdict.core.exit_codes import (
    INVALID_FILE_EXIT_CODE,
    TRUNCATED_FILE_EXIT_CODES,
)

REPOSITORY = Path(__file__).resolve().parents[4]
WAIT_S = 20.0
METADATA_LENGTH = 64 * 512
VALUES_LENGTH = 64 * 128


def write_cnc(path: Path, *, version: int = 512, heartbeat_ms: int = 1) -> np.memmap:
    """Write a small cnc file with one counter and one logged error."""
    lengths = [1024 + 768, 1024 + 128, METADATA_LENGTH, VALUES_LENGTH, 4096]
    buf = np.zeros(128 + sum(lengths), dtype=np.uint8)
    header = np.zeros(1, dtype=cnc_file.HEADER)
    header["cnc_version"] = version
    names = ("to_driver", "to_clients", "metadata", "values", "error_log")
    for name, length in zip(names, lengths, strict=True):
        header[f"{name}_length"] = length
    buf[: header.itemsize] = header.view(np.uint8)
    buf[128 + 1024 + 640 :][:8].view("<i8")[0] = heartbeat_ms
    metadata = buf[128 + lengths[0] + lengths[1] :][:METADATA_LENGTH].view(cnc_file.METADATA)
    metadata["type_id"][0] = 9
    metadata["state"][0] = cnc_file.ALLOCATED
    error = b"no route"
    at = 128 + sum(lengths[:4])
    buf[at : at + 4].view("<i4")[0] = 24 + len(error)
    buf[at + 4 : at + 8].view("<i4")[0] = 3
    buf[at + 24 : at + 24 + len(error)] = list(error)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(buf.tobytes())
    os.replace(fresh, path)
    return np.memmap(path, dtype=np.uint8, mode="r+")


def set_value(mapped: np.memmap, value: int) -> None:
    at = 128 + 1024 + 768 + 1024 + 128 + METADATA_LENGTH
    mapped[at : at + 8].view("<i8")[0] = value


class Process:
    """The process under test, with its output in a file."""

    def __init__(self, folder: Path) -> None:
        self.directory = folder / "aeron"
        self.files = HostDir(folder / "out")
        self.log = folder / "log"
        argv = [sys.executable, "-m", "windtunnel.harness.capture.counters", "--interval", "2ms"]
        argv += ["--aeron-dir", str(self.directory), "--out", str(self.files.path)]
        with self.log.open("wb") as output:
            self.popen = subprocess.Popen(argv, cwd=REPOSITORY, stdout=output, stderr=output)

    def wait_for(self, condition) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.01)

    def is_ready(self) -> bool:
        return "ready\n" in self.log.read_text()

    def is_waiting(self) -> bool:
        return "waiting for a driver" in self.log.read_text()

    def end(self) -> int:
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(WAIT_S)


@pytest.fixture
def process(tmp_path):
    started = Process(tmp_path)
    yield started
    started.popen.kill()
    started.popen.wait()


def test_waits_for_the_driver_then_samples_until_asked_to_end(process):
    process.wait_for(process.is_waiting)
    assert not process.is_ready()
    mapped = write_cnc(process.directory / "cnc.dat")
    process.wait_for(process.is_ready)
    process.wait_for(lambda: _last_value(process) == 0)
    set_value(mapped, 64)
    process.wait_for(lambda: _last_value(process) == 64)
    set_value(mapped, 96)
    assert process.end() == 0
    samples = read_samples(process.files.counter_samples)
    assert samples["value"].tolist() == [0, 64, 96]
    assert (np.diff(samples["time_ns"]) > 0).all()
    (counter,) = read_counters(process.files.counters)
    assert (counter.type_id, counter.final_value) == (9, 96)
    (error,) = read_error_log(process.files.cnc_errors)
    assert (error.count, error.text) == (3, "no route")


def _last_value(process):
    samples = read_samples(process.files.counter_samples)
    return samples["value"][-1] if samples is not None and len(samples) else None


def test_is_not_ready_before_the_heartbeat_beats(process):
    write_cnc(process.directory / "cnc.dat", heartbeat_ms=0)
    process.wait_for(process.is_waiting)
    time.sleep(0.2)
    assert not process.is_ready()
    write_cnc(process.directory / "cnc.dat", heartbeat_ms=1)
    process.wait_for(process.is_ready)


def test_a_driver_that_lives_shorter_than_a_sampling_interval_has_a_start_and_an_end(process):
    write_cnc(process.directory / "cnc.dat")
    process.wait_for(process.is_ready)
    assert process.end() == 0
    times_ns = Pressure.read(process.files.pressure).column("time_ns")
    assert len(times_ns) >= 2
    assert times_ns[-1] > times_ns[0]


def test_continues_when_the_driver_removes_its_directory(process):
    mapped = write_cnc(process.directory / "cnc.dat")
    process.wait_for(process.is_ready)
    shutil.rmtree(process.directory)
    set_value(mapped, 32)
    time.sleep(0.1)
    assert process.end() == 0
    assert read_counters(process.files.counters)[0].final_value == 32


@pytest.mark.parametrize("length", [0, 4096])
def test_a_file_that_is_truncated_ends_it_with_the_reason(process, length):
    path = process.directory / "cnc.dat"
    mapped = write_cnc(path)
    process.wait_for(process.is_ready)
    os.truncate(path, length)
    # The process may be killed while it reads, since it cannot check the length atomically.
    assert process.popen.wait(WAIT_S) in (INVALID_FILE_EXIT_CODE, *TRUNCATED_FILE_EXIT_CODES)
    if process.popen.returncode == INVALID_FILE_EXIT_CODE:
        text = f"expected {mapped.size} bytes, found {length}: it was truncated"
        assert text in process.log.read_text()


def test_leaves_no_documents_when_there_was_no_driver(process):
    process.wait_for(process.is_waiting)
    assert process.end() == 0
    assert not process.files.counters.exists()
    assert "before a driver started" in process.log.read_text()


def test_reports_what_is_wrong_with_an_invalid_file(process):
    write_cnc(process.directory / "cnc.dat", version=0x0100_0000)
    assert process.popen.wait(WAIT_S) == INVALID_FILE_EXIT_CODE
    assert "expected major version 0" in process.log.read_text()


@pytest.mark.parametrize("link", ["aeron", "aeron/cnc.dat"])
def test_follows_no_link_of_a_driver(process, tmp_path, link):
    process.wait_for(process.is_waiting)
    other = tmp_path / "other" / "cnc.dat"
    write_cnc(other)
    if link == "aeron":
        process.directory.symlink_to(other.parent)
    else:
        process.directory.mkdir()
        (tmp_path / link).symlink_to(other)
    assert process.popen.wait(WAIT_S) == INVALID_FILE_EXIT_CODE
    assert "found a symbolic link" in process.log.read_text()


class RequestedWhileHoldingEveryLock(ShutdownSignal):
    """A flag at whose third access a signal arrives, as it may at any bytecode."""

    looks = 0

    def __getattribute__(self, name):
        if name == "is_set":
            type(self).looks += 1
            if type(self).looks == 3:
                os.kill(os.getpid(), signal.SIGTERM)
        return super().__getattribute__(name)


def test_handles_a_signal_whatever_it_is_doing(tmp_path):
    write_cnc(tmp_path / "aeron" / "cnc.dat")
    live = map_live(tmp_path / "aeron")
    assert live is not None
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        note = RequestedWhileHoldingEveryLock.install()
        aeron, out = tmp_path / "aeron", HostDir(tmp_path / "out")
        follow(live, LogHolder(aeron), LossReportCopy(aeron), out, note, 0.001, os.getpid())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert RequestedWhileHoldingEveryLock.looks <= 4
    assert read_counters(HostDir(tmp_path / "out").counters)
