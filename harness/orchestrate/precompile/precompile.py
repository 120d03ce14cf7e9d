"""The kernels of a lab's processes, compiled before there is a lab.

    python -m windtunnel.harness.orchestrate.precompile.precompile

    sources, image, processor --digest--> <cache>/at-hand-<digest>
        there        nothing to do
        not there    relay, judge | driver, client, archive --compiled--> the mark

An empty cache is a container's: on this machine the setup has filled it. Left to the first run, the
processes of two hosts would all compile at once: no driver would be ready for minutes, and whoever
compiles at a first call is silent meanwhile and given up, a client by its driver and an archive by
its clients. Refuses to know where containers come from.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import process

PACKAGES = ("driver", "harness")
IMAGE = ("requirements.lock", "docker/Dockerfile")
"""These decide which Python and which compiler a container has."""

CACHE_VARIABLE = "WINDTUNNEL_KERNEL_CACHE"
PREFIX = "at-hand-"
LOCK_FILE = "at-hand.lock"
WARM_UPS = (("windtunnel.harness.warm_up",), ("windtunnel.driver.warm_up", "--mode", "SHARED"))
"""A lab's drivers have one thread each, since hosts share a machine."""

TOLD = "compiling kernels for containers, once, which takes minutes"


def mark_name() -> str:
    """The name of the file that says that everything is compiled, of today's sources and here."""
    # numba alone would take a second to import, and ten inside User Mode Linux.
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    digest = hashlib.sha256(f"{binding.get_host_cpu_name()} {features}".encode())
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    for path in [ROOT / name for name in IMAGE] + sorted(sources):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{PREFIX}{digest.hexdigest()[:24]}"


def are_in(cache: Path) -> bool:
    """Whether a cache holds all that is to be compiled."""
    return (cache / mark_name()).exists()


def compile_all(cache: Path) -> None:
    """Have all of them in a cache; of two that want the same at once the second finds it made.

    Tells on stderr how far it is. Raises LabError with the exit codes of what failed, or with the
    file that cannot be written.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _compile_missing(cache)
    except OSError as error:
        raise LabError(f"{error.filename or cache}: {error.strerror}") from error


def _compile_missing(cache: Path) -> None:
    # Sources that change meanwhile are compiled by who uses them.
    mark = cache / mark_name()
    with (cache / LOCK_FILE).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists():
            return
        print(TOLD, file=sys.stderr, flush=True)
        with ThreadPoolExecutor(len(WARM_UPS)) as executor:
            codes = list(executor.map(lambda words: _run(words, cache), WARM_UPS))
        failed = [
            f"{words[0]} ended with exit code {code}"
            for words, code in zip(WARM_UPS, codes, strict=True)
            if code
        ]
        if failed:
            raise LabError(f"kernels cannot be compiled: {', '.join(failed)}")
        mark.touch()


def _run(words: Sequence[str], cache: Path) -> int:
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    argv = [sys.executable, "-u", "-m", *words]
    return process.pass_through(argv, env=environment, is_all_on_stderr=True)


def main() -> int:
    """Fill the cache that the environment names. Returns the exit code."""
    try:
        compile_all(Path(os.environ[CACHE_VARIABLE]))
    except LabError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
