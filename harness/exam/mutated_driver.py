"""The mutants made real: one copy of the sources that has them all, and compiled kernels beside it.

    <store>/<repository>/
      tree/windtunnel/driver/...    the copy, see `mutation_source`; first on the subject's path
      tree/windtunnel/harness/...   workloads and the simulator, which compile the driver's kernels
      compiled-sim                  a digest of the sources that were compiled for a fidelity

All mutants share one compilation, and an environment variable selects the active one, or none. The
kernel cache is keyed by content, so only kernels that an edit touches are compiled.
"""

import fcntl
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from windtunnel.driver.kernels.cache import MODE, cache_root, require_trusted
from windtunnel.harness.exam import mutation_switch
from windtunnel.harness.exam.mutant import NONE, Mutant, MutantError, Side, load_all
from windtunnel.harness.exam.mutation_source import SWITCH, Unplantable, planted
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.labs import namespaces
from windtunnel.harness.orchestrate.processes.process import LocalProcess
from windtunnel.harness.orchestrate.subjects.subject import OURS, Pair, Subject

STORE = "planted"
"""Beside the compiled kernels."""
PACKAGE = "windtunnel"
PACKAGES = ("driver", "harness")
UNCOMPILED = (
    *("harness/cli/", "harness/exam/", "harness/orchestrate/"),
    *("harness/replay/", "harness/verdict/"),
)
"""Rooms that no process of a subject enters."""
PROGRAMS = {
    "netns": ("-m", "windtunnel.driver.warm_up", "--mode", "SHARED", "--patience", "60"),
    "sim": ("-m", "windtunnel.harness.simulator", "warm-up"),
}
"""By fidelity, what compiles all that its subject's processes need."""
WARM_UP_LIMIT_S = 1_800.0
"""A machine that is busy with other things takes its time."""
COMPILED = "compiled"
LOCK = "lock"


def prepare(
    mutant: Mutant | None,
    fidelity: str,
    tell: Callable[[str], None] = lambda text: None,
    *,
    mutants: Sequence[Mutant] | None = None,
    store: Path | None = None,
) -> dict[str, str]:
    """Make the driver with all mutants, compiled for a fidelity, unless it is there.

    Returns: the variables of processes in which `mutant` is at work, or none. Raises MutantError
    when an edit does not fit today's driver.
    """
    every = load_all() if mutants is None else list(mutants)
    folder = cache_root().parent / STORE if store is None else store
    home = folder.resolve() / hashlib.sha256(str(ROOT).encode()).hexdigest()[:16]
    texts = _texts(every)
    home.mkdir(mode=MODE, parents=True, exist_ok=True)
    require_trusted(home)
    environment = _environment(home)
    with (home / LOCK).open("w") as lock:
        # Of two that want the same at once the second finds it made.
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = _update(home / "tree" / PACKAGE, texts)
        compiled = home / f"{COMPILED}-{fidelity}"
        if not compiled.is_file() or compiled.read_text() != digest:
            tell("the driver with all mutants is made anew, and compiled as far as it changed")
            _compile(fidelity, environment, home)
            compiled.write_text(digest)
    number = 0 if mutant is None else 1 + [each.name for each in every].index(mutant.name)
    return {**environment, mutation_switch.VARIABLE: str(number)}


def plant(pair: Pair, mutant: Mutant | None, environment: dict[str, str]) -> Pair:
    """The pair with the mutant on its side; MutantError where another driver stands there.

    No mutant stands on both sides: the copy that has them all, with none at work.
    """
    name = NONE if mutant is None else mutant.name

    def on(side: Side, sound: Subject) -> Subject:
        if mutant is not None and mutant.side not in (side, "both"):
            return sound
        if sound.name != OURS.name:
            raise MutantError(f"mutant {name} is the {side}'s, which is {sound.name} here")
        return replace(sound, mutant=name, environment={**sound.environment, **environment})

    return Pair(on("sender", pair.publisher), on("receiver", pair.subscriber))


def _texts(mutants: Sequence[Mutant]) -> dict[str, str]:
    """The text of each file that an edit is of, with all of them in it."""
    found = {SWITCH: Path(mutation_switch.__file__).read_text(encoding="utf-8")}
    for file in dict.fromkeys(each.file for each in mutants):
        text = (ROOT / file).read_text(encoding="utf-8")
        edited = {
            number: each.applied(text)
            for number, each in enumerate(mutants, 1)
            if each.file == file
        }
        try:
            found[file] = planted(text, edited)
        except Unplantable as error:
            raise MutantError(f"{file}: {error}") from error
    return found


def _environment(home: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(home / "tree"),
        # Without it, Python looks into the working directory first, where the sound driver is.
        "PYTHONSAFEPATH": "1",
    }


def _update(tree: Path, texts: dict[str, str]) -> str:
    """Make the copy what it should be, file by file. Returns a digest of what may be compiled."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    sources = {path.relative_to(ROOT).as_posix(): path for path in paths}
    digest = hashlib.sha256()
    for name in sorted({*sources, *texts}):
        wanted = texts[name].encode() if name in texts else sources[name].read_bytes()
        file = tree / name
        if not file.is_file() or file.read_bytes() != wanted:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(wanted)
        if not name.startswith(UNCOMPILED):
            digest.update(name.encode() + b"\0" + hashlib.sha256(wanted).digest())
    for file in tree.rglob("*.py"):
        if file.relative_to(tree).as_posix() not in {*sources, *texts}:
            file.unlink()
    return digest.hexdigest()


def _compile(fidelity: str, environment: dict[str, str], home: Path) -> None:
    """Let the copy work once with nothing at work in it, so that no run waits for a compiler."""
    if fidelity not in PROGRAMS:
        return
    log = home / f"warm-up-{fidelity}.log"
    running = LocalProcess(
        "warm-up",
        ["nice", sys.executable, *PROGRAMS[fidelity]],
        env={**namespaces.environment(), **environment},
        cwd=home,
        log=log,
    )
    try:
        code = running.wait(WARM_UP_LIMIT_S)
        if code:
            raise MutantError(
                f"the driver with all mutants cannot be compiled: expected exit code 0 of "
                f"{PROGRAMS[fidelity][1]}, found {code}: {running.tail(2)}"
            )
    finally:
        running.kill()
