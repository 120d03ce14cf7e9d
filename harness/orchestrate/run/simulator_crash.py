"""Determines whose fault it is that a signal has ended the process of a simulation.

SIGSEGV and others in the turn of a driver    the driver of that host
the same outside of the drivers' turns        the harness: middlebox, clients, Python
SIGBUS while memory is short                  the harness: the memory for a file was exhausted
any other signal                              the harness: the system or a user ended it
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.artifact.run.simulator_turn import FILE, read_turn
from windtunnel.harness.orchestrate.labs.space import MEMORY_RESERVE_BYTES

CRASHES = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV},
)
"""Signals that a process receives because of a defect in its code."""


def crashed_driver(
    code: int | None, memory: Path, hosts: Sequence[str], log: str, last_log_line: str
) -> tuple[ProcessExit | None, str]:
    """Return the exit of the driver in whose turn the simulator crashed, or None, and a text.

    `code` is the simulator's exit code, and `memory` its directory in memory. The text says what is
    known about a crash, and is empty if the simulator did not crash.
    """
    if code is None or -code not in CRASHES:
        return None, ""
    if -code == signal.SIGBUS and shutil.disk_usage(memory).free < MEMORY_RESERVE_BYTES:
        return None, f"the memory for files in {memory.parent} is exhausted"
    turn = read_turn(memory / FILE, hosts)
    if turn is None:
        return None, "it is not known whose code was running"
    at = f"at {duration(turn.virtual_ns)} of virtual time"
    if not turn.is_drivers:
        what = f"a {turn.part} on host {turn.host}" if turn.part else "no host's code"
        return None, f"{what} was running {at}"
    name = f"{turn.host}/driver"
    text = f"{name} was ended by {signal.Signals(-code).name} in its {turn.part} {at}"
    exit_of_driver = ProcessExit(
        name=name,
        role="driver",
        exit_code=code,
        asked=False,
        log=log,
        last_log_line=last_log_line,
        virtual_ns=turn.virtual_ns,
        part=turn.part,
    )
    return exit_of_driver, text


def forget_turn(memory: Path) -> None:
    """Remove the file that an earlier run in the same memory directory may have left behind."""
    (memory / FILE).unlink(missing_ok=True)
