"""The log buffers of a host's driver, as they were saved at the end of the run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.log_index import LogFacts
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.dissect.driver_files.log_buffer import (
    LogBuffer,
    LogBufferError,
    read_log_buffer,
)
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.run_reader import RunReader


@dataclass(frozen=True)
class SavedLog:
    """One log buffer, saved at the end of the run."""

    path: Path
    log: LogBuffer
    buf: NDArray[np.uint8]


def saved_logs(
    reader: RunReader,
    files: HostDir,
    held: list[LogFacts],
    folder: str,
    session_id: int,
    stream_id: int,
) -> Iterator[SavedLog | Missing]:
    """Yield a stream's log buffers from one of the driver's two log folders, newest first, and why
    there is not another one. `held` is the list of the logs that the driver had.
    """
    why = f"lists no log of session {session_id}, stream {stream_id} in {folder}"
    for each in sorted(held, key=lambda each: -each.registration_id):
        if each.folder != folder:
            continue
        if each.left_out:
            why += f"; {folder}/{each.registration_id} was not saved: {each.left_out}"
            continue
        saved = _saved_log(reader, files.log_buffer(folder, each.registration_id), each)
        if isinstance(saved, Missing):
            yield saved
            return
        header = saved.log.default_header
        if (header.session_id, header.stream_id) == (session_id, stream_id):
            yield saved
    yield Missing(reader.name_of(files.log_index), why)


def _saved_log(reader: RunReader, path: Path, held: LogFacts) -> SavedLog | Missing:
    buf = reader.content(path)
    if isinstance(buf, Missing):
        return buf
    try:
        log = read_log_buffer(
            lambda at, length: buf[at : at + length].tobytes(), min(len(buf), held.length)
        )
    except LogBufferError as error:
        return Missing(reader.name_of(path), str(error), damaged=True)
    return SavedLog(path, log, buf)
