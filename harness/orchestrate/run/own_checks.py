"""Executes a scenario's own checks when a run has ended, and stores their results for the judge.

    checks.py --> process of its own --> results, line by line --> own-checks.json --> judge

The process leads a session, in a process namespace where this process may create one, without
rights and with few variables of the environment. It is killed at the time limit. Whatever it does
becomes a result: no exception of a check reaches the run.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from windtunnel.harness.artifact.document_values import ValueTypeError, parse
from windtunnel.harness.artifact.documents import DocumentError, parse_text
from windtunnel.harness.artifact.regular_file import read_text
from windtunnel.harness.artifact.run.own_checks import HARNESS, OwnCheck, OwnCheckFile, OwnChecks
from windtunnel.harness.orchestrate.applications.launcher import WITHOUT_RIGHTS
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.processes.process import LocalProcess, with_parent_death_signal
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.scenario.schema.units import format_duration

PROGRAM = "windtunnel.harness.checks"
RESULTS_BYTES_MAX = 8 << 20
START_TIMEOUT_S = 60.0
"""Time limit for the process until it executes the file."""
POLL_S = 0.01
NS_PER_S = 1_000_000_000
_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME")
_PREFIXES = ("NUMBA_", "WINDTUNNEL_KERNEL_CACHE")


def execute(spec: RunSpec) -> None:
    """Execute all files with checks that the scenario of a run names, and write their results."""
    files = []
    for index, name in enumerate(spec.scenario.checks):
        if not spec.allow_commands:
            files.append(OwnCheckFile(name, error=f"{name}: its execution is not allowed"))
            continue
        try:
            files.append(_execute(spec, index, name))
        except (LabError, OSError) as error:
            files.append(OwnCheckFile(name, error=f"{name}: {error}"))
    OwnChecks(files).write(spec.folder.own_checks)


def _execute(spec: RunSpec, index: int, name: str) -> OwnCheckFile:
    folder = spec.folder
    results, log = folder.own_check_results(index), folder.own_check_log(index)
    results.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    within_s = spec.scenario.budget.checks_ns / NS_PER_S
    seconds = int(START_TIMEOUT_S + within_s) + 1
    places = (
        spec.scenario_file.parent.absolute(),
        name,
        folder.path.absolute(),
        results.absolute(),
    )
    running = LocalProcess(
        f"own-checks/{name}",
        _command([*map(str, places), str(seconds)]),
        env=_environment(),
        cwd=folder.path,
        log=log,
    )
    try:
        is_late = not _ends(running, results, within_s)
    finally:
        running.kill()
    code = running.poll() or 0
    how = f"did not end within {format_duration(spec.scenario.budget.checks_ns)}"
    if not is_late:
        how = f"ended the process with exit code {code}"
        if code < 0:
            how = f"ended the process by {_signal_name(-code)}"
        how += f"; see {log.name}"
    found = _read(results, name, how)
    results.unlink(missing_ok=True)
    return found


def _command(arguments: Sequence[str]) -> list[str]:
    """Return the command of the process, with as few rights as this process can give it."""
    is_root = bool(privileges.effective_capabilities() >> privileges.CAP_SYS_ADMIN & 1)
    enclosed: list[str] = []
    if is_root and shutil.which("unshare"):
        # The first process of a namespace takes all others with it, also those in other sessions.
        enclosed = ["unshare", "--pid", "--fork", "--kill-child", "--"]
    if shutil.which(WITHOUT_RIGHTS[0]):
        enclosed += WITHOUT_RIGHTS if is_root else ("setpriv", "--no-new-privs", "--")
    command = [*enclosed, sys.executable, "-I", "-m", PROGRAM, *arguments]
    return with_parent_death_signal(command)


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in _VARIABLES or name.startswith(_PREFIXES)
    }


def _ends(running: LocalProcess, results: Path, within_s: float) -> bool:
    """Wait until the process ends. Returns False if it has to be killed."""
    is_ready = False
    late_s = time.monotonic() + START_TIMEOUT_S
    while running.poll() is None:
        if not is_ready and results.exists() and results.stat().st_size:
            is_ready, late_s = True, time.monotonic() + within_s
        if time.monotonic() > late_s:
            return False
        time.sleep(POLL_S)
    return True


def _signal_name(number: int) -> str:
    """Return the name of a signal. Most real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read(results: Path, name: str, how: str) -> OwnCheckFile:
    """Read what the process has written. `how` says how it ended, if it did not write all."""
    checks: dict[str, OwnCheck] = {}
    error: str | None = None
    try:
        lines = read_text(results, RESULTS_BYTES_MAX).splitlines() if results.exists() else []
        for line in lines:
            document = parse_text(line, results.name)
            if "error" in document:
                error = parse(str, document["error"], "error")
            elif "name" in document:
                found = parse(OwnCheck, document)
                checks[found.name] = found
    except (DocumentError, ValueTypeError, OSError, UnicodeDecodeError) as problem:
        error = f"{name}: its results cannot be read: {problem}"
    left = [each for each in checks.values() if each.outcome == HARNESS and not each.texts]
    if not left:
        return OwnCheckFile(
            name, list(checks.values()), f"{name}: {how}" if error is None else error
        )
    first, *others = left
    checks[first.name] = replace(first, texts=[f"{name}:{first.line}: {how}"])
    for each in others:
        text = f"{name}:{each.line}: was not executed, because {first.name} {how}"
        checks[each.name] = replace(each, texts=[text])
    return OwnCheckFile(name, list(checks.values()), error or "")
