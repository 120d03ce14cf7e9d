"""Kills a recording process with SIGKILL at random moments and checks its files.

    python -m tests.archive.server_killed [--moments 500] [--seed N]

    writer ---- recording 0 ---- | ---- recording 1 ---X SIGKILL
        reports its position           opened as an archive opens its directory:
        after each block               every stop position is a frame's end, at or after the
                                       reported one; every byte before it is the stream's

The writer is forked from a process that has imported everything, so that 500 kills take a minute. A
last frame that is not proven complete may be refused, but no frame that was reported as written.
"""

import argparse
import os
import random
import secrets
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter, WriteOptions
from windtunnel.driver.archive.server import archive_directory
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from windtunnel.driver.archive.storage.recovery import recovered_stop
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.archive.storage.sync import SyncLevel
from windtunnel.driver.base.clock import SystemClock
from windtunnel.driver.base.errors import StorageError

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRESS = struct.Struct("<3q")
"""Recording id, position, and whether the end of the recording was written."""
LATEST_S = 0.05
TIMEOUT = 20_000
RECORDINGS_MAX = 2_000
"""Enough recordings for a minute, after which the writer ends by itself."""
END_MAX = 6 * own.TERM


@dataclass(frozen=True)
class Moment:
    """The result of one kill."""

    recordings: int
    position: int
    is_refused: bool


def frames_of(seed, recording_id):
    """Return (position, bytes) of each frame of a stream whose payloads contain no zero byte."""
    chance = random.Random(f"{seed}/{recording_id}")
    frames, position = [], 0
    end = chance.randrange(1_024, END_MAX)
    while position < end:
        length = chance.randrange(1, 1_377)
        room = own.TERM - position % own.TERM
        if 32 + (length + 31) // 32 * 32 > room:
            frames.append((position, own.frame(position, bytes(room - 32), is_pad=True)))
            position += room
        payload = chance.randbytes(length).replace(b"\0", b"\1")
        frames.append((position, own.frame(position, payload)))
        position += len(frames[-1][1])
    return frames


def blocks_of(seed, recording_id):
    """Return the frames as blocks: sequences of frames in one term, with padding as a separate
    block.
    """
    chance, run = random.Random(seed), []
    for position, content in frames_of(seed, recording_id):
        is_pad = content[6] == own.PAD
        begins_term = position % own.TERM == 0
        if run and (is_pad or begins_term or chance.random() < 0.1):
            yield b"".join(run)
            run = []
        run.append(content)
        if is_pad:
            yield run.pop()
    yield b"".join(run)


def write(folder, seed):
    """Record streams until the process is killed, or a timeout."""
    progress = os.open(folder / "progress", os.O_RDWR | os.O_CREAT)
    level = SyncLevel.DATA if seed % 4 == 0 else SyncLevel.CACHE
    catalog = CatalogWriter.create(folder, CatalogOptions(capacity=32, sync_level=level))
    for recording_id in range(RECORDINGS_MAX):
        recording = own.descriptor(recording_id)
        assert catalog.add(recording) == recording_id
        writer = SegmentWriter(folder, recording, 0, WriteOptions(level))
        for block in blocks_of(seed, recording_id):
            writer.write(memoryview(block))
            os.pwrite(progress, PROGRESS.pack(recording_id, writer.position, 0), 0)
        writer.close()
        catalog.record_stop(recording_id, writer.position, 1)
        os.pwrite(progress, PROGRESS.pack(recording_id, writer.position, 1), 0)


def _progress(folder):
    path = folder / "progress"
    return path.read_bytes() if path.exists() else b""


def check(folder, seed):
    """Open the files in the same way as an archive and check them. Returns the result or an
    AssertionError.
    """
    written = _progress(folder)
    last_id, position, is_stopped = PROGRESS.unpack(written) if written else (-1, 0, 0)
    is_refused = False
    try:
        archive_directory.open_catalog(folder, CatalogOptions(capacity=32), SystemClock()).close()
    except StorageError as error:
        if "may be torn" not in str(error):
            raise
        is_refused = True
    with Catalog(folder) as catalog:
        ids = catalog.recording_ids
        assert ids == tuple(range(len(ids)))
        assert len(ids) > last_id
        for recording_id in ids:
            recording = catalog.descriptor(recording_id)
            stop, least = recording.stop_position, position if recording_id == last_id else 0
            frames = frames_of(seed, recording_id)
            ends = [0, *(at + len(content) for at, content in frames)]
            if recording_id < last_id or (recording_id == last_id and is_stopped):
                assert stop == ends[-1], (recording_id, stop, ends[-1])
            if stop < 0:
                assert is_refused
                assert recording_id == ids[-1]
                found = recovered_stop(folder, recording)
                stop = found.doubtful_position
                assert stop is not None
            assert stop in ends, (recording_id, stop)
            assert stop >= least, (recording_id, stop, least)
            files = [each.path.read_bytes() for each in segments_of(folder, recording_id)]
            assert is_refused or {len(each) for each in files} <= {own.SEGMENT}
            content = b"".join(files)
            assert content[:stop] == b"".join(part for _, part in frames)[:stop]
    return Moment(len(ids), position, is_refused)


def _fork_server():
    """Fork a writer for each line of input. Report its process id and its end."""
    for line in sys.stdin:
        folder, seed = line.split()
        child = os.fork()
        if child == 0:
            try:
                write(Path(folder), int(seed))
            finally:
                os._exit(1)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


class Killer:
    """Starts writers and kills them."""

    def __init__(self, folder):
        self._folder, self._count = folder, 0
        self._fork_server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.archive.server_killed", "--nursery"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip

    def moment(self, chance):
        """Start a writer and kill it at a random moment. Returns the result."""
        self._count += 1
        folder, seed = self._folder / str(self._count), chance.randrange(1 << 30)
        folder.mkdir()
        self._fork_server.stdin.write(f"{folder} {seed}\n")
        self._fork_server.stdin.flush()
        child = int(self._fork_server.stdout.readline())
        if chance.random() < 0.9:
            _until(lambda: _progress(folder))
        time.sleep(chance.random() * LATEST_S)
        os.kill(child, signal.SIGKILL)
        ended = int(self._fork_server.stdout.readline())
        assert ended == -signal.SIGKILL, f"the writer failed by itself: {ended}"
        if not (folder / "archive.catalog").exists():
            return Moment(0, 0, False)
        found = check(folder, seed)
        for path in folder.iterdir():
            path.unlink()
        return found

    def close(self):
        self._fork_server.stdin.close()
        self._fork_server.wait()
        self._fork_server.stdout.close()


def _until(condition):
    """Wait for a condition. If the writer fails, the test fails with its exit code."""
    for _ in range(TIMEOUT):
        if condition():
            return
        time.sleep(0.001)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.archive.server_killed")
    parser.add_argument("--moments", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--nursery", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.nursery:
        _fork_server()
        return 0
    seed = secrets.randbelow(1 << 32) if given.seed is None else given.seed
    print(f"seed={seed}", flush=True)
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="killed-recordings-") as name:
        killer = Killer(Path(name))
        try:
            moments = [killer.moment(chance) for _ in range(given.moments)]
        finally:
            killer.close()
    refused = sum(each.is_refused for each in moments)
    midway = sum(each.position > 0 for each in moments)
    print(f"{len(moments)} moments, {midway} with data, {refused} refused a torn frame: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
