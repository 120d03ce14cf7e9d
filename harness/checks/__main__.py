"""Executes the checks of one file over one run, in a process of its own with limited resources.

    python -m windtunnel.harness.checks FOLDER FILE RUN_DIR RESULTS SECONDS

    {"ready": true}                                everything is imported: the time limit begins
    {"name": "latency", "line": 7, ...}            for each check of the file: HARNESS, not executed
    {"name": "latency", "line": 7, "outcome": ...} the result of a check, which replaces the line
    {"error": ""}                                  the end, or why the file has no checks

Each is a line of RESULTS. If the process is killed, the parent knows what was executed. What checks
print is the process's log.
"""

import contextlib
import json
import os
import resource
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, cast

from windtunnel.harness.artifact.run.own_checks import (
    FAIL,
    HARNESS,
    INCONCLUSIVE,
    PASS,
    OwnCheck,
    OwnOutcome,
)
from windtunnel.harness.checks.check import defined, line_of, name_of
from windtunnel.harness.checks.evidence import Evidence
from windtunnel.harness.scenario.own_checks import read_source
from windtunnel.harness.verdict.core.finding import EvidenceMissing

MEMORY_BYTES_MAX = 2 << 30
"""Maximum memory of the process, without files that it maps."""
OUTPUT_BYTES_MAX = 4 << 20
"""Maximum length of the log, and of every file that a check writes."""
TEXTS_MAX = 10
"""Maximum number of texts of a check. A check that yields more is not continued."""
TEXT_LENGTH_MAX = 500
MODULE = "own_checks_of_scenario"


class _BadResultError(Exception):
    """Raised if a check returns something else than None and texts."""


class _Results:
    """The file of results. Each line is written at once."""

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)

    def write(self, document: dict[str, Any]) -> None:
        os.write(self._descriptor, json.dumps(document).encode() + b"\n")


def main(argv: list[str]) -> None:
    """Execute the checks, and end the process without waiting for threads that they started."""
    folder, name, run_dir, results_path, seconds = argv
    # What was printed before the process is killed is in its log.
    cast(TextIOWrapper, sys.stdout).reconfigure(line_buffering=True)
    results = _Results(results_path)
    _limit(int(seconds))
    results.write({"ready": True})
    error = _execute(Path(folder), name, Path(run_dir), results)
    results.write({"error": error})
    os._exit(0)


def _limit(seconds: int) -> None:
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, MEMORY_BYTES_MAX),
        (resource.RLIMIT_FSIZE, OUTPUT_BYTES_MAX),
        (resource.RLIMIT_CPU, seconds),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _execute(folder: Path, name: str, run_dir: Path, results: _Results) -> str:
    """Execute the file and its checks. Returns why the file has no checks, or an empty string."""
    file = str(folder / name)
    try:
        source = read_source(folder, name)
    except ValueError as error:
        return str(error)
    module = types.ModuleType(MODULE)
    module.__file__ = file
    # Dataclasses look up their module.
    sys.modules[MODULE] = module
    # Files beside this one can be imported, but replace no others.
    sys.path.append(str((folder / name).parent))
    try:
        exec(compile(source, file, "exec"), vars(module))
    except BaseException as error:
        return _raised(error, file, name, 0)
    if not defined:
        return f"{name}: expected functions below @check, found none"
    for each in defined:
        results.write(asdict(OwnCheck(name_of(each), line_of(each))))
    evidence = Evidence(run_dir)
    for each in defined:
        results.write(asdict(_result(each, evidence, file, name)))
    return ""


def _result(function: Callable[..., Any], evidence: Evidence, file: str, name: str) -> OwnCheck:
    """Execute one check. Whatever it raises is its result."""
    line = line_of(function)
    outcome: OwnOutcome = HARNESS
    try:
        found = list(islice(_texts(function(evidence)), TEXTS_MAX))
        return OwnCheck(name_of(function), line, FAIL if found else PASS, found)
    except _BadResultError as error:
        texts = [f"{name}:{line}: {error}"]
    except EvidenceMissing as error:
        texts = [_short(str(error))]
        outcome = HARNESS if error.damaged else INCONCLUSIVE
    except BaseException as error:
        texts = [_raised(error, file, name, line)]
    return OwnCheck(name_of(function), line, outcome, texts)


def _texts(returned: object) -> Iterator[str]:
    """Yield what a check has returned or yields, as texts of one line."""
    if returned is None:
        return
    several = isinstance(returned, list | tuple | Iterator)
    for each in returned if several else [returned]:  # type: ignore[attr-defined]  # see above
        if not isinstance(each, str) or not each.strip():
            expected = "expected None, or a text that says what is wrong"
            raise _BadResultError(f"{expected}, found {_short(repr(each))}")
        yield _short(each)


def _raised(error: BaseException, file: str, name: str, line: int) -> str:
    """Return the file, line and message of an exception that the user's code has raised. Prints
    where it came from.
    """
    with contextlib.suppress(OSError):  # The log may be full.
        traceback.print_exception(error)
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno or 0
        return f"{name}:{line}: {type(error).__name__}: {_short(error.msg)}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    line = (frames[-1].lineno or 0) if frames else line
    where = f"{name}:{line}" if line else name
    return ": ".join(filter(None, (where, type(error).__name__, _short(str(error)))))


def _short(text: str) -> str:
    """Return a text as one line of limited length."""
    text = " ".join(text[: 2 * TEXT_LENGTH_MAX].split())
    text = text.encode(errors="replace").decode()
    return text if len(text) <= TEXT_LENGTH_MAX else f"{text[: TEXT_LENGTH_MAX - 3]}..."


if __name__ == "__main__":
    main(sys.argv[1:])
