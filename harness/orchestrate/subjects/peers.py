"""The drivers that can be tested, by the name that a user gives them.

    ours                   our own driver
    pyaeron                the real C driver out of the Python package pyaeron; also `aeron-c`
    java                   the real Java driver out of the jar that AERON_ALL_JAR names
    aeronmd:/path/to/it    any C media driver, or whatever understands AERON_DIR as one does

A name becomes a `Subject`. One that this machine cannot start is a subject too, and says why it is
missing: its runs are UNSUPPORTED, never failures. The workloads of all are ours, since our client
can attach to any driver. Refuses to start anything: what a driver is shows in its counters.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from windtunnel.harness.orchestrate.labs.labs import COMPOSE
from windtunnel.harness.orchestrate.subjects.subject import (
    DIRECTORY,
    LIBRARIES,
    OURS,
    PYTHON,
    Pair,
    Subject,
)

JAR_VARIABLE = "AERON_ALL_JAR"
PACKAGE = "pyaeron"
STORE = ".peers"
"""Name of the store within the folder of the runs."""
PATH_PREFIX = "aeronmd:"
ALIASES = {"aeron-c": "pyaeron"}
KNOWN = ("ours", "pyaeron", "java", f"{PATH_PREFIX}/path/to/aeronmd")

IMAGE_PYTHON = (3, 13)
"""Of the containers; a compiled package serves one version of Python only."""

_C_ENVIRONMENT = {
    "AERON_DIR": DIRECTORY,
    # As for ours: two hosts share one machine, so one thread a driver that sleeps when idle. Both
    # drivers hand single datagrams to the kernel by default.
    "AERON_THREADING_MODE": "SHARED",
    "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
    "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS": "50us",
    # A log then takes only the memory that is written to.
    "AERON_TERM_BUFFER_SPARSE_FILE": "true",
    "AERON_PRINT_CONFIGURATION": "true",
}

_JAVA_OPTIONS = (
    "-XX:+UseSerialGC",
    "-Xmx256m",
    *("--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"),
    *("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"),
)
_JAVA_SETTINGS = {
    "aeron.dir": DIRECTORY,
    "aeron.threading.mode": "SHARED",
    # Its default sleeps for about 50 us, as the others are told to.
    "aeron.shared.idle.strategy": "org.agrona.concurrent.SleepingIdleStrategy",
    "aeron.term.buffer.sparse.file": "true",
    "aeron.print.configuration": "true",
}
_JAVA_MAIN = "io.aeron.driver.MediaDriver"


class PeerError(ValueError):
    """A name that stands for no peer."""


def find(name: str, fidelity: str, store: Path) -> Subject:
    """Return the peer of a name, as it is started in a lab of this fidelity.

    `store` is a folder below that of the runs, for what containers have to be given. Raises
    PeerError for a name that cannot be one, and OSError if the store cannot be written.
    """
    known = ALIASES.get(name, name)
    if known.startswith(PATH_PREFIX):
        return _by_path(known, fidelity, store)
    if known not in _BUILT_IN:
        raise PeerError(f"peer {name!r}: expected one of {', '.join(KNOWN)}")
    return _BUILT_IN[known](fidelity, store)


def pair(publisher: str, subscriber: str, fidelity: str, store: Path) -> Pair:
    """Return the pair of two names; see `find`."""
    return Pair(find(publisher, fidelity, store), find(subscriber, fidelity, store))


def _ours(fidelity: str, store: Path) -> Subject:
    return OURS


def _pyaeron(fidelity: str, store: Path) -> Subject:
    missing, libraries = "", None
    environment = dict(_C_ENVIRONMENT)
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        missing = f"the Python package {PACKAGE} is not installed (it needs Python 3.12 or later)"
    elif fidelity == COMPOSE:
        if sys.version_info[:2] == IMAGE_PYTHON:
            libraries = _bring(Path(found.origin).parent, store / PACKAGE / PACKAGE).parent
            environment["PYTHONPATH"] = str(LIBRARIES)
        else:
            image, here = (
                ".".join(map(str, each)) for each in (IMAGE_PYTHON, sys.version_info[:2])
            )
            missing = f"containers have Python {image}, and {PACKAGE} is here for {here} only"
    return Subject(
        name="pyaeron",
        driver=(PYTHON, "-m", "windtunnel.harness.bench.c_driver"),
        environment=environment,
        libraries=libraries,
        missing=missing,
    )


def _java(fidelity: str, store: Path) -> Subject:
    jar = os.environ.get(JAR_VARIABLE, "")
    program = java_program()
    missing = why_no_java()
    if fidelity == COMPOSE:
        missing = "the image of the containers has no Java; use --fidelity netns"
    settings = (f"-D{name}={value}" for name, value in _JAVA_SETTINGS.items())
    driver = (program or "java", *_JAVA_OPTIONS, *settings, "-cp", os.path.abspath(jar), _JAVA_MAIN)
    return Subject(name="java", driver=driver, reads_environment=False, missing=missing)


def why_no_java() -> str:
    """What Aeron's programs in Java lack on this machine; empty where nothing is missing."""
    jar = os.environ.get(JAR_VARIABLE, "")
    if not jar:
        return f"{JAR_VARIABLE} is not set: expected the path of Aeron's aeron-all jar"
    if not Path(jar).is_file():
        return f"{JAR_VARIABLE} is {jar}: expected the path of a jar, found no such file"
    if java_program() is None:
        return "there is no Java: neither $JAVA_HOME/bin/java nor java on the PATH"
    return ""


def java_program() -> str | None:
    """Where Java is, if anywhere."""
    home = os.environ.get("JAVA_HOME")
    at_home = Path(home) / "bin" / "java" if home else None
    if at_home is not None and os.access(at_home, os.X_OK):
        return str(at_home)
    return shutil.which("java")


def _by_path(name: str, fidelity: str, store: Path) -> Subject:
    text = name.removeprefix(PATH_PREFIX)
    if not text:
        raise PeerError(f"peer {name!r}: expected a path after the colon")
    path = Path(text).expanduser().absolute()
    driver, libraries, missing = (str(path),), None, ""
    if not path.is_file():
        missing = "expected the path of a media driver, found no such file"
    elif not os.access(path, os.X_OK):
        missing = "the file is not executable"
    elif fidelity == COMPOSE:
        libraries = _bring(path, store / "aeronmd" / path.name).parent
        driver = (f"{LIBRARIES}/{path.name}",)
    return Subject(
        name=f"{PATH_PREFIX}{path}",
        driver=driver,
        environment=dict(_C_ENVIRONMENT),
        libraries=libraries,
        missing=missing,
    )


def _bring(source: Path, target: Path) -> Path:
    """Copy a file or a folder to where containers see it, and return the copy's path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)
    return target


_BUILT_IN: dict[str, Callable[[str, Path], Subject]] = {
    "ours": _ours,
    "pyaeron": _pyaeron,
    "java": _java,
}
BUILT_IN_NAMES = frozenset(_BUILT_IN)
