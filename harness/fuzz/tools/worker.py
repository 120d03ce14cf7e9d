"""A long-lived process that runs commands on damaged files, and the process that watches it.

    parent ---- fork ----> worker: prepare, run, check, restore, for each of its trials
       ^                      |
       '-- report (pipe) -----'    one JSON line for each violation, and one for progress
       '-- clock (shared page) '   the number of its trial, and the processor time at its start

The worker limits its own memory and the length of files that it writes. The parent ends a worker
whose trial takes too much processor time, or hangs. Forking saves the start of an interpreter.
"""

import ctypes
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.capture import process_facts
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.tools.programs import Program, mains
from windtunnel.harness.fuzz.tools.trial import Trial, undamaged
from windtunnel.harness.fuzz.tools.workshop import Workshop
from windtunnel.harness.fuzz.waiting import Waiting
from windtunnel.harness.orchestrate.lab import LabError

CPU_S_MAX = 20.0
"""Processor time of a trial above which it is a violation. Most need some milliseconds."""
HANG_S_MAX = 60.0
"""Duration of a trial above which it is a violation, whatever it waits for but a processor."""
MEMORY_GROWTH_MAX = 512 << 20
ADDRESS_SPACE_MORE = 4 << 30
FILE_LENGTH_MAX = 256 << 20
PRINTED_MAX = 32 << 20
REPORT_INTERVAL_S = 0.2
UNDAMAGED_SHARE = 100
"""One trial in so many is followed by a run of its command on undamaged files."""
HARNESS = 3
DEFECT = re.compile(
    r"Traceback \(most recent|the judge raised|defect of windtunnel itself|not enough memory"
)
"""Text of commands that have met an exception that they did not expect."""
_NEVER = -1
PR_SET_PDEATHSIG = 1


class Runner:
    """Runs trials in this process, whose standard output and error become files."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self._printed = [_redirected(shop.folder / name, number) for number, name in (
            (1, "stdout"), (2, "stderr"))]  # fmt: skip
        sys.stdout, sys.stderr = (
            os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2)
        )
        os.chdir(shop.folder / "cwd")
        os.environ["TMPDIR"] = str(shop.folder / "tmp")
        self._main, self._archive_main = mains()
        self._expected: dict[str, tuple[int, str]] = {}

    def check_undamaged(self, program: Program) -> None:
        """Run a command on undamaged files. Raises Violation if its result is not the first one."""
        found = self._undamaged(program)
        expected = self._expected.setdefault(program.name, found)
        if program.is_repeatable and found != expected:
            raise Violation(
                f"with undamaged files: expected exit code {expected[0]}, found {found[0]}: "
                f"{found[1][:500]!r} in place of {expected[1][:500]!r}"
            )

    def _undamaged(self, program: Program) -> tuple[int, str]:
        trial = undamaged(program, self.shop.base)
        words = self.shop.prepare(trial)
        try:
            code = self._call(program, words)
            text = self._text(0, PRINTED_MAX)
            if code not in program.codes:
                raise Violation(f"{program.name}: exit code {code}: {self._text(1, PRINTED_MAX)}")
            self.shop.check(trial)
        finally:
            self.shop.restore(trial)
        return code, text

    def run(self, trial: Trial) -> None:
        """Run one trial. Raises Violation if its outcome is wrong."""
        if trial.program.name not in self._expected and self.shop.base.names:
            self.check_undamaged(trial.program)
        words = self.shop.prepare(trial)
        _reset_peak_memory()
        before = process_facts.memory(os.getpid()).resident
        try:
            code = self._call(trial.program, words)
            grown = _peak_memory() - before
            self._check_code(trial.program, code)
            if grown > MEMORY_GROWTH_MAX:
                raise Violation(f"memory has grown by {grown >> 20} MiB")
            self.shop.check(trial)
        finally:
            self.shop.restore(trial)

    def _call(self, program: Program, words: list[str]) -> int:
        for descriptor in self._printed:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        code = self._archive_main(words[1:]) if program.is_archive_tool else self._main(words)
        sys.stdout.flush()
        sys.stderr.flush()
        return code

    def _check_code(self, program: Program, code: int) -> None:
        printed = sum(os.fstat(descriptor).st_size for descriptor in self._printed)
        out, errors = self._text(0, 1 << 20), self._text(1, 1 << 20)
        is_documented = code in program.codes or (code == HARNESS and program.judges(out))
        if not is_documented or DEFECT.search(errors) or (program.is_judge and DEFECT.search(out)):
            said = errors[-4_000:] or "\n".join(out.splitlines()[:20])[:4_000]
            raise Violation(f"exit code {code}, expected one of {program.codes}: {said}")
        if printed > PRINTED_MAX:
            raise Violation(f"the command printed {printed} bytes")

    def _text(self, index: int, length: int) -> str:
        return os.pread(self._printed[index], length, 0).decode(errors="replace")


def _redirected(path: Path, number: int) -> int:
    made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.dup2(made, number)
    return made


def _reset_peak_memory() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _peak_memory() -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1_024
    raise OSError("expected VmHWM in /proc/self/status, found none")


class Worker:
    """A forked process, as its parent sees it. It reports violations as (number, text)."""

    def __init__(self, target: "Callable[[Reporter], None]") -> None:
        self.files = 0
        self.violations: list[tuple[int, str]] = []
        self.died_at: int | None = None
        """The number of the trial in which the process ended."""
        with tempfile.TemporaryFile() as file:
            self._clock: NDArray[np.int64] = np.memmap(file, np.int64, "w+", shape=3)
        self._clock[:] = _NEVER
        self._pipe, write_end = os.pipe()
        self._rest, self._failure = b"", ""
        self._since_ns = 0
        self._waiting: Waiting | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._pipe)
            _be_worker(target, Reporter(write_end, self._clock))
        os.close(write_end)
        os.set_blocking(self._pipe, False)
        self.is_running = True

    def watch(self) -> None:
        """Read reports, and end the worker if its trial exceeds a limit. Does not wait."""
        number, cpu_ns, since_ns = self._clock.tolist()
        reason = ""
        if self._waiting is None or since_ns != self._since_ns:
            self._since_ns, self._waiting = since_ns, Waiting(self.pid)
        waited_s = self._waiting.seconds()
        if number != _NEVER and time.monotonic_ns() - since_ns > CPU_S_MAX * 1e9:
            used_s = (process_facts.processor_ns(self.pid) - cpu_ns) / 1e9
            if used_s > CPU_S_MAX:
                reason = f"the command used {used_s:.0f} s of processor time, and was ended"
            elif waited_s > HANG_S_MAX:
                reason = f"the command did not end within {waited_s:.0f} s"
        if reason:
            os.kill(self.pid, signal.SIGKILL)
        ended, status = os.waitpid(self.pid, 0 if reason else os.WNOHANG)
        self._read()
        if ended == 0:
            return
        self._close()
        code = os.waitstatus_to_exitcode(status)
        if code != 0 and number != _NEVER:
            self.died_at = number
            self.violations.append((number, reason or f"the process of the command ended: {code}"))
        elif code != 0:
            raise LabError(
                f"a worker ended with exit code {code} outside of a trial: {self._failure}"
            )

    def _read(self) -> None:
        try:
            while part := os.read(self._pipe, 1 << 20):
                self._rest += part
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            document = json.loads(line)
            self.files = document.get("files", self.files)
            if document.get("number") == _NEVER:
                self._failure = document["text"]
            elif "text" in document:
                self.violations.append((document["number"], document["text"]))

    def end(self) -> None:
        """End the worker."""
        if self.is_running:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._close()

    def _close(self) -> None:
        self.is_running = False
        os.close(self._pipe)


class Reporter:
    """The worker's end of the connection to its parent."""

    def __init__(self, pipe: int, clock: NDArray[np.int64]) -> None:
        self._pipe, self._clock = pipe, clock
        self._files, self._told_s = 0, 0.0

    def begin(self, number: int) -> None:
        """Announce that a trial begins."""
        cpu_ns = process_facts.processor_ns(os.getpid())
        self._clock[:] = number, cpu_ns, time.monotonic_ns()

    def end(self, files: int, is_last: bool = False) -> None:
        """Announce that a trial with this number of damaged files has ended."""
        self._clock[0] = _NEVER
        self._files += files
        if is_last or time.monotonic() - self._told_s > REPORT_INTERVAL_S:
            self._told_s = time.monotonic()
            self._tell({"files": self._files})

    def violation(self, number: int, text: str) -> None:
        """Report that a trial has a wrong outcome."""
        self._tell({"number": number, "text": text})

    def _tell(self, document: dict[str, object]) -> None:
        line = json.dumps(document).encode() + b"\n"
        while line:
            line = line[os.write(self._pipe, line) :]


def _be_worker(target: Callable[[Reporter], None], reporter: Reporter) -> None:
    """Run a worker until it has done its work. Never returns."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        target(reporter)
        reporter.end(0, is_last=True)
        code = 0
    except BaseException:
        reporter.violation(_NEVER, traceback.format_exc())
    finally:
        os._exit(code)


def limit_resources() -> None:
    """Limit the memory of this process, and the length of the files that it writes."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESS_SPACE_MORE,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LENGTH_MAX,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
