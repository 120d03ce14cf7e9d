"""Makes small, undamaged files for every tool: each damaged file is a changed copy of one of them.

    run/          the folder of a simulated run with losses and a violated check
    suite/        the folder of the suite with this run
    captures/     a capture as pcap, pcapng and compressed pcap
    scenario/     a scenario file that uses most sections
    aeron/        the directory of a live driver: counters, errors, a loss report and log buffers
    archive/      the directory of an archive with several recordings

All files are made by Windtunnel itself, so they have the formats of this version.
"""

import contextlib
import gzip
import lzma
import os
import random
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from windtunnel.driver.archive.client.archive import AeronArchive
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.protocol.codes import SourceLocation
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.harness.artifact.compressed_file import compress_file
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.fuzz.archive_process import ArchiveProcess
from windtunnel.harness.fuzz.checked_streams import LOOPBACK
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.frames import Target, frames_of
from windtunnel.harness.fuzz.tools.base_scenario import SCENARIO
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes.process import LocalProcess

FOLDERS = ("run", "suite", "captures", "scenario", "aeron", "archive")
PATIENCE_S = 60.0
RUN_PATIENCE_S = 600.0
RECORDINGS, MESSAGES = 3, 150
SESSION_ID, STREAM_ID, TERM_ID = 77, 1_001, 5
SMALL = {
    "AERON_COUNTERS_BUFFER_LENGTH": str(1 << 20),
    "AERON_LOSS_REPORT_BUFFER_LENGTH": str(1 << 16),
}
"""Environment variables that make a driver's files small."""


def make_base_files(folder: Path, seed: int) -> None:
    """Make all folders with undamaged files. Raises LabError if a file cannot be made."""
    folder.mkdir(parents=True)
    (folder / "scenario").mkdir()
    (folder / "scenario" / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    _make_runs(folder, seed)
    _make_captures(folder)
    _make_shared_memory(folder)


def _make_runs(folder: Path, seed: int) -> None:
    payload = folder / "payload"
    payload.write_bytes(random.Random(seed).randbytes(40_000))
    command = [sys.executable, "-m", "windtunnel.harness", "run"]
    command += [str(folder / "scenario" / "scenario.yaml"), "--fidelity", "sim"]
    # The run must violate a check: otherwise `shrink` has nothing to do.
    command += ["--payload", str(payload), "--out", str(folder / "runs"), "--sabotage", "flip-byte"]
    process = LocalProcess(
        "the simulator", [*command, "--seed", str(seed)],
        env=os.environ, cwd=Path.cwd(), log=folder / "run.log",
    )  # fmt: skip
    try:
        code = process.wait(RUN_PATIENCE_S)
    finally:
        process.kill()
    made = list((folder / "runs").glob("*/*/verdict.json"))
    if code != 1 or len(made) != 1:
        raise LabError(
            f"expected a run that ends with exit code 1, found {code}: {process.tail(20)}"
        )
    made[0].parent.parent.rename(folder / "suite")
    run = next((folder / "suite").glob("*/verdict.json")).parent
    compress_file(run / "captures" / "b.pcap")
    shutil.copytree(run, folder / "run")
    (folder / "suite" / "report.html").unlink()
    shutil.rmtree(folder / "runs")
    payload.unlink()
    (folder / "run.log").unlink()


def _make_captures(folder: Path) -> None:
    made = folder / "captures"
    made.mkdir()
    content = (folder / "run" / "captures" / "a.pcap").read_bytes()
    (made / "a.pcap").write_bytes(content)
    (made / "a.pcap.gz").write_bytes(gzip.compress(content, mtime=0))
    (made / "a.pcap.xz").write_bytes(lzma.compress(content))
    (made / "a.pcapng").write_bytes(as_pcapng(content))


def as_pcapng(pcap: bytes) -> bytes:
    """Convert a little-endian pcap file with nanosecond timestamps to pcapng. Source: RFC draft
    ietf-opsawg-pcapng, sections 4.1 to 4.3.
    """
    (link_type,) = struct.unpack_from("<I", pcap, 20)
    made = [
        _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        # Option if_tsresol (9): timestamps in units of 10^-9 s.
        _block(1, struct.pack("<HHIHHB3xHH", link_type, 0, 1 << 18, 9, 1, 9, 0, 0)),
    ]
    at = 24
    while at < len(pcap):
        seconds, fraction, length, original = struct.unpack_from("<4I", pcap, at)
        time_ns = seconds * 1_000_000_000 + fraction
        head = struct.pack("<5I", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, length, original)
        made.append(_block(6, head + pcap[at + 16 : at + 16 + length]))
        at += 16 + length
    return b"".join(made)


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack("<2I", kind, length) + body + struct.pack("<I", length)


def _make_shared_memory(folder: Path) -> None:
    """Record streams, lose a frame, and copy the directories of driver and archive."""
    port = free_ports(4)[0]
    control = f"aeron:udp?endpoint={LOOPBACK}:{port}"
    with ArchiveProcess(folder / "live", control, SMALL) as process:
        process.start()
        with Aeron(context=ClientContext(dir=process.driver.directory)) as aeron:
            context = ArchiveContext(
                control_request_channel="aeron:ipc", control_response_channel="aeron:ipc"
            )
            with AeronArchive.connect(aeron, context) as archive:
                for number in range(RECORDINGS):
                    _record(aeron, archive, STREAM_ID + 1 + number)
            _lose_a_frame(aeron, port + 1)
            _fail(aeron)
            with _stopped(process.driver.pid):
                shutil.copytree(process.driver.directory, folder / "aeron")
        process.stop()
        shutil.copytree(process.directory, folder / "archive")
    shutil.rmtree(folder / "live")


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """Stop a process, which would otherwise remove log buffers of closed publications."""
    os.kill(pid, signal.SIGSTOP)
    try:
        _until(lambda: _states(pid) == {"T"}, "a driver to stop")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _states(pid: int) -> set[str]:
    """Return the states of a process's threads. Source: proc(5), /proc/[pid]/stat."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return {each.read_text().rpartition(")")[2].split()[0] for each in threads}


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise LabError(f"waited {PATIENCE_S:g} s for {what}")
        time.sleep(0.001)


def _offer(publication: Any, content: bytes) -> None:
    _until(lambda: publication.offer(content) > 0, "a publication")


def _record(aeron: Aeron, archive: AeronArchive, stream_id: int) -> None:
    channel = "aeron:ipc?term-length=64k"
    recorded = archive.start_recording(channel, stream_id, SourceLocation.LOCAL)
    publication = aeron.add_exclusive_publication(channel, stream_id)
    chance = random.Random(stream_id)
    for _ in range(MESSAGES):
        content = chance.randbytes(chance.randrange(10, 2_000))
        _offer(publication, content)
    end = publication.position
    recording_id = stream_id - STREAM_ID - 1
    _until(lambda: archive.recording_position(recording_id) == end, "the end of a recording")
    archive.stop_recording_subscription(recorded)
    publication.close()


def _lose_a_frame(aeron: Aeron, port: int) -> None:
    """Send a frame beyond a gap, so that the driver's loss report has an entry."""
    channel = f"aeron:udp?endpoint={LOOPBACK}:{port}"
    place = f"|term-length=64k|session-id={SESSION_ID}"
    place += f"|init-term-id={TERM_ID}|term-id={TERM_ID}|term-offset=0"
    subscription = aeron.add_subscription(channel, STREAM_ID)
    publication = aeron.add_exclusive_publication(channel + place, STREAM_ID)
    _until(lambda: bool(subscription.images) and publication.is_connected, "a stream")
    for number in range(20):
        _offer(publication, bytes(number))
    target = Target(LOOPBACK, port, SESSION_ID, STREAM_ID, TERM_ID)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        beyond = frames_of(target, publication.position + 4_096)[0]
        report = aeron.context.dir / "loss-report.dat"
        deadline_s = time.monotonic() + PATIENCE_S
        while not (report.exists() and any(report.read_bytes()[:64])):
            sender.sendto(beyond, (LOOPBACK, port))
            time.sleep(0.01)
            if time.monotonic() > deadline_s:
                raise Violation("the driver reported no loss although a frame is missing")


def _fail(aeron: Aeron) -> None:
    """Send a command that the driver rejects and logs."""
    try:
        aeron.add_publication("aeron:udp?endpoint=no-such-host.invalid:1", STREAM_ID)
    except Exception as error:
        if "no-such-host" not in str(error) and "resolve" not in str(error).lower():
            raise
