"""The mutated driver: a copy of the sources that contains all mutants, with compiled kernels.

    <store>/<repository>/
      tree/windtunnel/driver/...    the copy, see `mutation_source`; first on PYTHONPATH
      tree/windtunnel/harness/...   workloads and the simulator, which compile the driver's kernels
      compiled-sim                  digest of the sources that were compiled for a fidelity
      prepared-sim                  digest of the sources and mutants that the copy was made from

All mutants are compiled together, and an environment variable selects the active mutant or none.
The kernel cache is keyed by content, so only kernels that an edit affects are compiled.
"""

import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from windtunnel.driver.kernels.cache import MODE, require_trusted
from windtunnel.driver.kernels.sources import cache_root
from windtunnel.harness.exam import mutation_switch
from windtunnel.harness.exam.mutant import NONE, Mutant, MutantError, Side, load_all
from windtunnel.harness.exam.mutation_source import (
    INLINED,
    SWITCH,
    MutationError,
    activating,
    with_mutants,
    without_inlining,
)
from windtunnel.harness.installation import ROOT, SCENARIOS
from windtunnel.harness.orchestrate.labs import namespaces
from windtunnel.harness.orchestrate.processes.process import LocalProcess
from windtunnel.harness.orchestrate.subjects.subject import OURS, Pair, Subject

STORE = "planted"
"""Name of the folder that contains the mutated driver, next to the kernel cache."""
PACKAGE = "windtunnel"
PACKAGES = ("driver", "harness")
SIMULATOR = "harness/simulator/__main__.py"
"""The program that a worker of an exam forks for each run."""
UNCOMPILED = (
    *("harness/cli/", "harness/exam/", "harness/orchestrate/"),
    *("harness/replay/", "harness/verdict/"),
)
"""Folders whose modules the driver under test and the workloads never import."""
MANY_HOSTS = SCENARIOS / "many" / "multicast-one-lossy.yaml"
PROGRAMS = {
    "netns": (("windtunnel.driver.warm_up", "--mode", "SHARED", "--patience", "60"),),
    "sim": (
        ("windtunnel.harness.simulator", "warm-up"),
        # Worlds of more than two hosts have kernels of their own.
        ("windtunnel.harness", "run", str(MANY_HOSTS), "--fidelity", "sim"),
    ),
}
"""Fidelity level -> modules, with arguments, that compile the kernels of driver and workloads."""
WARM_UP_LIMIT_S = 1_800.0
"""Timeout of the compilation in seconds. It is long, because the machine may be busy."""
COMPILED, PREPARED = "compiled", "prepared"
LOCK = "lock"


def prepare(
    mutant: Mutant | None,
    fidelity: str,
    report: Callable[[str], None] = lambda text: None,
    *,
    mutants: Sequence[Mutant] | None = None,
    store: Path | None = None,
    variant: str = "",
) -> dict[str, str]:
    """Create the mutated driver and compile it for a fidelity level, unless it is up to date.

    Each `variant`, which is a set of mutants, has a copy of its own.

    Returns: the environment variables that activate `mutant`, or no mutant if it is None. Raises
    MutantError if an edit does not apply to the current driver.
    """
    every = load_all() if mutants is None else list(mutants)
    folder = cache_root().parent / STORE if store is None else store
    home = folder.resolve() / hashlib.sha256(f"{ROOT}{variant}".encode()).hexdigest()[:16]
    made_from, prepared = _inputs(every), home / f"{PREPARED}-{fidelity}"
    # Merging the mutants takes seconds, which each run of an exam would need.
    texts = None if _is(prepared, made_from) else _texts(every)
    home.mkdir(mode=MODE, parents=True, exist_ok=True)
    require_trusted(home)
    environment = _environment(home)
    with (home / LOCK).open("w") as lock:
        # Concurrent callers wait here. They then find that the copy is up to date.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is(prepared, made_from):
            digest = _update(home / "tree" / PACKAGE, texts or _texts(every))
            for each in PROGRAMS:
                if not _is(home / f"{PREPARED}-{each}", made_from):
                    (home / f"{PREPARED}-{each}").unlink(missing_ok=True)
            compiled = home / f"{COMPILED}-{fidelity}"
            if not _is(compiled, digest):
                report("rebuilding the driver with all mutants and compiling the changed kernels")
                _compile(fidelity, environment, home)
                compiled.write_text(digest)
            prepared.write_text(made_from)
    number = 0 if mutant is None else 1 + [each.name for each in every].index(mutant.name)
    counted = {
        name: value for name, value in os.environ.items() if name == mutation_switch.EXECUTIONS
    }
    return {**environment, **counted, mutation_switch.VARIABLE: str(number)}


def with_mutant(pair: Pair, mutant: Mutant | None, environment: dict[str, str]) -> Pair:
    """Return both drivers under test, with a mutant active in the sending driver, the receiving
    driver or both. Raises MutantError if one of these drivers is not Windtunnel's.

    Without a mutant, both sides use the mutated driver with no mutant active.
    """
    name = NONE if mutant is None else mutant.name

    def on(side: Side, subject: Subject) -> Subject:
        if mutant is not None and mutant.side not in (side, "both"):
            return subject
        if subject.name != OURS.name:
            raise MutantError(
                f"mutant {name}: expected the driver {OURS.name} as the {side}, "
                f"found {subject.name}"
            )
        return replace(subject, mutant=name, environment={**subject.environment, **environment})

    return Pair(on("sender", pair.publisher), on("receiver", pair.subscriber))


def _texts(mutants: Sequence[Mutant]) -> dict[str, str]:
    """Return the new contents of each file that differs from its original, by path. The contents
    include all mutants of the file, and no kernel is inlined.
    """
    found = {
        SWITCH: Path(mutation_switch.__file__).read_text(encoding="utf-8"),
        SIMULATOR: activating((ROOT / SIMULATOR).read_text(encoding="utf-8")),
    }
    for file in dict.fromkeys(each.file for each in mutants):
        text = (ROOT / file).read_text(encoding="utf-8")
        edited = {
            number: each.applied(text)
            for number, each in enumerate(mutants, 1)
            if each.file == file
        }
        try:
            found[file] = with_mutants(text, edited)
        except MutationError as error:
            raise MutantError(f"{file}: {error}") from error
    for file, path in _sources().items():
        text = found[file] if file in found else path.read_text(encoding="utf-8")
        if INLINED in text:
            found[file] = without_inlining(text)
    return found


def _environment(home: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(home / "tree"),
        # Without this setting, Python would import the driver from the working directory.
        "PYTHONSAFEPATH": "1",
    }


def _is(file: Path, content: str) -> bool:
    return file.is_file() and file.read_text() == content


def _sources() -> dict[str, Path]:
    """Return the files that are copied, by their path in the repository."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path for path in paths}


def _inputs(mutants: Sequence[Mutant]) -> str:
    """Return a digest of the sources and mutants from which the copy is made."""
    digest = hashlib.sha256()
    for name, path in sorted(_sources().items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    for each in mutants:
        digest.update(each.model_dump_json().encode())
    return digest.hexdigest()


def _update(tree: Path, texts: dict[str, str]) -> str:
    """Update the copy of the sources, one file at a time. Returns a digest of the files that affect
    compilation.
    """
    sources = _sources()
    digest = hashlib.sha256()
    for name in sorted({*sources, *texts}):
        content = texts[name].encode() if name in texts else sources[name].read_bytes()
        file = tree / name
        if not file.is_file() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        if not name.startswith(UNCOMPILED):
            digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    for file in tree.rglob("*.py"):
        if file.relative_to(tree).as_posix() not in {*sources, *texts}:
            file.unlink()
    return digest.hexdigest()


def _compile(fidelity: str, environment: dict[str, str], home: Path) -> None:
    """Compile the mutated driver's kernels by running it without an active mutant."""
    for module, *arguments in PROGRAMS.get(fidelity, ()):
        with tempfile.TemporaryDirectory(prefix="windtunnel-warm-up-") as folder:
            running = LocalProcess(
                "warm-up",
                ["nice", sys.executable, "-m", module, *arguments],
                env={**namespaces.environment(), **environment},
                cwd=Path(folder),
                log=home / f"warm-up-{fidelity}.log",
            )
            try:
                code = running.wait(WARM_UP_LIMIT_S)
                if code:
                    raise MutantError(
                        f"the driver with all mutants cannot be compiled: expected exit code 0 "
                        f"from {module}, found {code}: {running.tail(2)}"
                    )
            finally:
                running.kill()
