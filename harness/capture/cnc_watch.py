"""Prints the content of a driver's cnc.dat when it changes, for `windtunnel peer check` in a lab.

    python -m windtunnel.harness.capture.cnc_watch --aeron-dir D

    {"problem": "cnc.dat does not exist yet", ...}
    {"problem": "", "version": 512, "heartbeat_ms": 1700000000000, "client_liveness_ns": 7000000000}

The driver is not trusted: only the header and the heartbeat are read, and no link is followed.
It runs until it is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

import numpy as np

from windtunnel.harness.artifact.regular_file import UnsafeFileError, folder_below, open_regular
from windtunnel.harness.capture.live_cnc import CNC_FILE
from windtunnel.harness.dissect.driver_files.cnc_file import (
    HEADER,
    HEADER_LENGTH,
    RING_HEARTBEAT_OFFSET,
    RING_TRAILER_LENGTH,
    CncFileError,
    section_ends,
)

INTERVAL_S = 0.05
_HEARTBEAT_LENGTH = 8


@dataclass(frozen=True)
class CncSight:
    """What a cnc.dat says, or why that is unknown."""

    problem: str = ""
    version: int = 0
    heartbeat_ms: int = 0
    client_liveness_ns: int = 0


def look(directory: Path) -> CncSight:
    """Read the header and the heartbeat of a driver's cnc.dat."""
    try:
        with (
            folder_below(directory.parent, PurePath(directory.name)) as folder,
            open_regular(folder / CNC_FILE) as file,
        ):
            length = os.fstat(file.fileno()).st_size
            bytes_of_header = file.read(HEADER_LENGTH)
            header = np.frombuffer(bytes_of_header, dtype=np.uint8)
            ends = section_ends(header)
            if ends is None:
                return CncSight(f"{CNC_FILE} has no version yet")
            if ends[-1] > length:
                text = f"expected {ends[-1]} bytes for its sections, found {length}"
                return CncSight(f"{CNC_FILE}: {text}")
            file.seek(ends[0] - RING_TRAILER_LENGTH + RING_HEARTBEAT_OFFSET)
            heartbeat_ms = int.from_bytes(file.read(_HEARTBEAT_LENGTH), "little", signed=True)
    except FileNotFoundError:
        return CncSight(f"{CNC_FILE} does not exist")
    except UnsafeFileError as error:
        return CncSight(f"{CNC_FILE}: {error.strerror}")
    except (CncFileError, OSError) as error:
        return CncSight(f"{CNC_FILE}: {error}")
    fields = header[: HEADER.itemsize].view(HEADER)[0]
    return CncSight(
        version=int(fields["cnc_version"]),
        heartbeat_ms=heartbeat_ms,
        client_liveness_ns=int(fields["client_liveness_timeout_ns"]),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the state of a driver's cnc.dat whenever it changes, until this process is killed."""
    parser = argparse.ArgumentParser(
        prog="windtunnel.harness.capture.cnc_watch", description=__doc__
    )
    parser.add_argument("--aeron-dir", type=Path, required=True)
    options = parser.parse_args(argv)
    last = None
    while True:
        seen = look(options.aeron_dir)
        if seen != last:
            print(json.dumps(asdict(seen)), flush=True)
            last = seen
        time.sleep(INTERVAL_S)


if __name__ == "__main__":
    main()
