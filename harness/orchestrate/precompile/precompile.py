"""Compilation of the kernels of a lab's processes before the lab exists.

    python -m windtunnel.harness.orchestrate.precompile.precompile

    sources, image, processor --digest--> <cache>/precompiled-<digest>, the mark file
        exists       nothing to do
        missing      relay, judge | driver, client, archive --compiled--> the mark file

A container's cache is empty at first, whereas setup fills this machine's cache. If the first run
had to compile, the processes of two hosts would compile at the same time, and no driver would be
ready for minutes. A client or archive that compiles during its first call sends no keepalives
meanwhile, so its driver or its clients time out.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from windtunnel.driver.kernels.sources import CACHE_VARIABLE
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import process

PACKAGES = ("driver", "harness")
IMAGE = ("requirements.lock", "docker/Dockerfile")
"""The files that determine the version of Python and of the compiler in a container."""

PREFIX = "precompiled-"
LOCK_FILE = "precompile.lock"
WARM_UPS = (("windtunnel.harness.warm_up",), ("windtunnel.driver.warm_up", "--mode", "SHARED"))
"""The programs that compile kernels. Drivers use one thread, because hosts share a machine."""

START_MESSAGE = "compiling kernels for containers, which takes minutes and is only done once"


def mark_name() -> str:
    """Return the name of the mark file for the current sources, image and processor."""
    # numba is not imported, which takes a second, or ten seconds in User Mode Linux.
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    digest = hashlib.sha256(f"{binding.get_host_cpu_name()} {features}".encode())
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    for path in [ROOT / name for name in IMAGE] + sorted(sources):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{PREFIX}{digest.hexdigest()[:24]}"


def is_complete(cache: Path) -> bool:
    """Return whether a cache contains all kernels of the current sources."""
    return (cache / mark_name()).exists()


def compile_all(cache: Path) -> None:
    """Compile all kernels into a cache, unless it already contains them.

    Concurrent callers are serialized, so the second caller finds the kernels. Progress is printed
    to stderr. Raises LabError with the exit codes of the failed programs, or with the file that
    cannot be written.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _compile_missing(cache)
    except OSError as error:
        raise LabError(f"{error.filename or cache}: {error.strerror}") from error


def _compile_missing(cache: Path) -> None:
    # The name is computed first. If sources change meanwhile, the processes that use them compile
    # them.
    mark = cache / mark_name()
    with (cache / LOCK_FILE).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists():
            return
        print(START_MESSAGE, file=sys.stderr, flush=True)
        with ThreadPoolExecutor(len(WARM_UPS)) as executor:
            codes = list(executor.map(lambda program: _run(program, cache), WARM_UPS))
        failed = [
            f"{program[0]} ended with exit code {code}"
            for program, code in zip(WARM_UPS, codes, strict=True)
            if code
        ]
        if failed:
            raise LabError(f"kernels cannot be compiled: {', '.join(failed)}")
        mark.touch()


def _run(program: Sequence[str], cache: Path) -> int:
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    argv = [sys.executable, "-u", "-m", *program]
    return process.run_in_foreground(argv, env=environment, stdout_to_stderr=True)


def main() -> int:
    """Fill the cache named by `WINDTUNNEL_KERNEL_CACHE`, and return the exit code."""
    try:
        compile_all(Path(os.environ[CACHE_VARIABLE]))
    except LabError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
