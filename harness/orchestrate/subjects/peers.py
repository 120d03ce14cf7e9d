"""The drivers that can be tested, by their peer names on Windtunnel's command line.

    ours                   Windtunnel's driver
    pyaeron                the real C driver in the Python package pyaeron; alias `aeron-c`
    java                   the real Java driver in the jar that AERON_ALL_JAR names
    aeronmd:/path/to/it    any C media driver, or another program that uses AERON_DIR alike
    image:NAME             a container image that keeps the contract in `image_contract`

A name is resolved to a `Subject`. If this machine cannot start it, the subject has the reason in
`missing`, and its runs are UNSUPPORTED rather than failures. A path that names no program, or no
jar, is an error instead, so that a mistake in it is not taken for a driver that is not installed.
All subjects use Windtunnel's workloads, because its client can attach to any driver. This module
starts no process. The version of a driver is read from its counters during a run.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from windtunnel.harness.orchestrate.fidelity import COMPOSE
from windtunnel.harness.orchestrate.subjects import image_contract
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
"""Name of the folder in which files for containers are stored, below the folder of all runs."""
PATH_PREFIX = "aeronmd:"
IMAGE_PREFIX = image_contract.PREFIX
ALIASES = {"aeron-c": "pyaeron"}
KNOWN = ("ours", "pyaeron", "java", f"{PATH_PREFIX}/path/to/aeronmd", f"{IMAGE_PREFIX}NAME")

IMAGE_PYTHON = (3, 13)
"""The Python version in the container image. Compiled packages support only one version."""

_C_ENVIRONMENT = {
    "AERON_DIR": DIRECTORY,
    # Hosts share one machine, so each driver has one thread that sleeps when idle, as with `ours`.
    # By default both drivers send single datagrams.
    "AERON_THREADING_MODE": "SHARED",
    "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
    "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS": "50us",
    # A sparse log uses memory only for the parts that were written.
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
    # By default this driver sleeps for about 50 us when idle, as configured for the others.
    "aeron.shared.idle.strategy": "org.agrona.concurrent.SleepingIdleStrategy",
    "aeron.term.buffer.sparse.file": "true",
    "aeron.print.configuration": "true",
}
_JAVA_MAIN = "io.aeron.driver.MediaDriver"


class PeerError(ValueError):
    """Raised for an invalid peer name, or a path of a driver at which there is none."""


def find(name: str, fidelity: str, store: Path) -> Subject:
    """Return the driver under test that a peer name stands for, in a lab of the given fidelity.

    Files for containers are copied to `store`, which is below the runs folder. Raises PeerError
    if the name is invalid or its path names no program or jar, and OSError if the store cannot be
    written.
    """
    known = ALIASES.get(name, name)
    if known.startswith(PATH_PREFIX):
        return _by_path(known, fidelity, store)
    if known.startswith(IMAGE_PREFIX):
        return _by_image(known, fidelity)
    if known not in _BUILT_IN:
        raise PeerError(f"unknown peer {name!r}: expected one of {', '.join(KNOWN)}")
    return _BUILT_IN[known](fidelity, store)


def pair(publisher: str, subscriber: str, fidelity: str, store: Path) -> Pair:
    """Return the drivers under test that two peer names stand for, for the publisher and the
    subscriber.
    """
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
            libraries = _copy_to_store(Path(found.origin).parent, store / PACKAGE / PACKAGE).parent
            environment["PYTHONPATH"] = str(LIBRARIES)
        else:
            image, here = (
                ".".join(map(str, each)) for each in (IMAGE_PYTHON, sys.version_info[:2])
            )
            missing = (
                f"containers have Python {image}, but here {PACKAGE} is only installed for {here}"
            )
    return Subject(
        name="pyaeron",
        driver=(PYTHON, "-m", "windtunnel.harness.bench.c_driver"),
        environment=environment,
        libraries=libraries,
        missing=missing,
    )


def _java(fidelity: str, store: Path) -> Subject:
    jar = os.environ.get(JAR_VARIABLE, "")
    require_jar()
    program = java_program()
    missing = java_problem()
    if fidelity == COMPOSE:
        missing = "the container image has no Java: use --fidelity netns"
    settings = (f"-D{name}={value}" for name, value in _JAVA_SETTINGS.items())
    driver = (program or "java", *_JAVA_OPTIONS, *settings, "-cp", os.path.abspath(jar), _JAVA_MAIN)
    return Subject(name="java", driver=driver, reads_environment=False, missing=missing)


def require_jar() -> None:
    """Raise PeerError if the environment names a jar that does not exist."""
    jar = os.environ.get(JAR_VARIABLE, "")
    if jar and not Path(jar).is_file():
        raise PeerError(f"{JAR_VARIABLE} is {jar}: expected the path of a jar, found no such file")


def java_problem() -> str:
    """Return the reason why this machine cannot run Aeron's Java programs, or "" if it can."""
    if not os.environ.get(JAR_VARIABLE, ""):
        return f"{JAR_VARIABLE} is not set: expected the path of Aeron's aeron-all jar"
    if java_program() is None:
        return "Java is not installed: found neither $JAVA_HOME/bin/java nor java on the PATH"
    return ""


def java_program() -> str | None:
    """Return the path of the program `java`, or None if it is not installed."""
    home = os.environ.get("JAVA_HOME")
    at_home = Path(home) / "bin" / "java" if home else None
    if at_home is not None and os.access(at_home, os.X_OK):
        return str(at_home)
    return shutil.which("java")


def _by_path(name: str, fidelity: str, store: Path) -> Subject:
    text = name.removeprefix(PATH_PREFIX)
    if not text:
        raise PeerError(f"peer {name!r}: expected a path after the colon, found nothing")
    path = Path(text).expanduser().absolute()
    driver, libraries = (str(path),), None
    if not path.is_file():
        found = "found a folder" if path.is_dir() else "found no such file"
        raise PeerError(f"peer {name!r}: expected the path of a media driver, {found}")
    if not os.access(path, os.X_OK):
        raise PeerError(f"peer {name!r}: expected an executable file, found one that is not")
    if fidelity == COMPOSE:
        libraries = _copy_to_store(path, store / "aeronmd" / path.name).parent
        driver = (f"{LIBRARIES}/{path.name}",)
    return Subject(
        name=f"{PATH_PREFIX}{path}",
        driver=driver,
        environment=dict(_C_ENVIRONMENT),
        libraries=libraries,
    )


def _by_image(name: str, fidelity: str) -> Subject:
    image = image_contract.image_of(name)
    if not image:
        found = name.removeprefix(IMAGE_PREFIX)[:80]
        raise PeerError(f"peer {name[:80]!r}: expected the name of an image, found {found!r}")
    kind, missing = image_contract.kind_of(image, fidelity)
    return Subject(
        name=f"{IMAGE_PREFIX}{image}",
        driver=(),
        environment=dict(_C_ENVIRONMENT),
        missing=missing,
        image=image,
        kind=kind,
    )


def image_variables(directory: str) -> dict[str, str]:
    """Return the settings of a driver in an image, given its directory."""
    return Subject("image", (), environment=dict(_C_ENVIRONMENT)).variables("", directory)


def _copy_to_store(source: Path, target: Path) -> Path:
    """Copy a file or folder below the runs folder, where containers can read it. Returns the path
    of the copy.
    """
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
