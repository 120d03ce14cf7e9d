"""Compiles the kernels that the processes of a lab need, before the lab exists.

    python -m windtunnel.harness.orchestrate.precompile.precompile

    sources, image, processor --digest--> <cache>/precompiled-<lab>-<digest>, the mark file
        exists       nothing to do
        missing      the lab's programs, in parallel --compiled--> the mark file

Without this, the processes of two hosts would compile the same kernels at the same time, and no
driver would be ready for a minute. A client or an archive that compiles a kernel at its first call
sends no keepalives during the compilation, so that its driver or its clients time out. The cache
of a container is empty at first; this module does not know where containers come from.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from pathlib import Path

from windtunnel.driver.kernels import cache_error, processor
from windtunnel.driver.kernels.sources import CACHE_VARIABLE, FILE_NAME, Sources
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.fidelity import COMPOSE, NETNS, SIM
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.precompile.progress import OnProgress, print_progress, reported
from windtunnel.harness.orchestrate.processes import process

IMAGE = ("requirements.lock", "docker/Dockerfile")
"""Files that determine the versions of Python and of the compiler in a container."""

PREFIX = "precompiled-"
LOCK_FILE = "precompile.lock"
Programs = tuple[tuple[str, ...], ...]
OF_PROCESSES: Programs = (
    ("windtunnel.harness.warm_up", "relay", "judge"),
    ("windtunnel.driver.warm_up", "--mode", "SHARED"),
)
"""Programs for labs with real hosts. Each driver has one thread, since hosts share a machine."""
OF_SIMULATOR: Programs = (
    ("windtunnel.harness.simulator", "warm-up"),
    ("windtunnel.harness.warm_up", "judge"),
)
PROGRAMS: dict[str, Programs] = {NETNS: OF_PROCESSES, COMPOSE: OF_PROCESSES, SIM: OF_SIMULATOR}
"""Programs that compile the kernels for each fidelity. They run in parallel."""

KERNELS: dict[str, int] = {NETNS: 164, COMPOSE: 164, SIM: 88}
"""Approximate numbers of kernels that the programs of each fidelity compile into an empty cache."""


def mark_name(cache: Path, fidelity: str = NETNS) -> str:
    """Return the name of the file that marks a kernel cache as complete for the current sources."""
    # numba is not imported, which takes a second, or ten seconds in User Mode Linux.
    from llvmlite import binding

    levels = processor.levels_of(binding.get_host_cpu_features())
    digest = hashlib.sha256(f"{levels or binding.get_host_cpu_name()}".encode())
    digest.update(repr(PROGRAMS[fidelity]).encode())
    for name in IMAGE:
        if (ROOT / name).exists():
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    sources = Sources(ROOT, cache / FILE_NAME)
    digest.update(sources.digest_of_all().encode())
    sources.save()
    return f"{PREFIX}{digest.hexdigest()[:24]}"


def is_complete(cache: Path, fidelity: str = NETNS) -> bool:
    """Return whether a kernel cache contains all kernels that a lab needs, compiled from the
    current sources.
    """
    return (cache / mark_name(cache, fidelity)).exists()


def compile_all(
    cache: Path, fidelity: str = NETNS, on_progress: OnProgress = print_progress
) -> None:
    """Compile all kernels that a lab needs into a kernel cache, unless the cache is complete.

    Concurrent callers are serialized, so the second caller finds the kernels compiled. Raises
    LabError with the exit codes of the failed programs, or with the file that cannot be written.
    """
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        _compile_missing(cache, fidelity, on_progress)
    except OSError as error:
        text = f"{error.filename or cache}: {error.strerror or error}"
        raise LabError(
            f"{text}: expected a writable directory for compiled kernels, {cache}; set another one "
            f"in {CACHE_VARIABLE}"
        ) from error


def _compile_missing(cache: Path, fidelity: str, on_progress: OnProgress) -> None:
    # The name is computed first. If sources change meanwhile, the processes that use them compile
    # them.
    mark = cache / mark_name(cache, fidelity)
    if mark.exists():
        return
    with (cache / LOCK_FILE).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists():
            return
        programs = PROGRAMS[fidelity]
        with reported(cache, KERNELS[fidelity], on_progress):
            codes = _run(programs, cache)
        failed = [
            f"{program[0]} ended with exit code {code}"
            for program, code in zip(programs, codes, strict=True)
            if code
        ]
        if failed:
            text = f"kernels cannot be compiled: {', '.join(failed)}"
            # A file that exceeds the limit is the likeliest cause if there is a limit.
            raise LabError(text + cache_error.size_limit_advice())
        mark.touch()


def _run(programs: Programs, cache: Path) -> list[int]:
    """Run programs that compile kernels, and return their exit codes. If this process is killed,
    they end, too, and remove their temporary folders.
    """
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    commands = [
        process.with_parent_death_signal([sys.executable, "-u", "-m", *program], "TERM")
        for program in programs
    ]
    return process.run_together(commands, env=environment, stdout_to_stderr=True)


def main() -> int:
    """Compile all kernels into the cache named by `WINDTUNNEL_KERNEL_CACHE`. Returns the exit
    code.
    """
    try:
        compile_all(Path(os.environ[CACHE_VARIABLE]))
    except LabError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
