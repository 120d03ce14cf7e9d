"""The mutants made real: one copy of the sources that has them all, and compiled kernels beside it.

    <store>/<repository>/
      tree/driver/...    the copy, see `planting`; first on the path of the subject's processes
      tree/harness/...   goes with it, for workloads and simulator compile the driver's kernels
      kernels/...        compiled kernels: links to those of today's sources, and the others
      compiled-sim       a digest of the sources for which a fidelity's kernels were compiled

All mutants share one compilation, and a variable chooses the one that is at work, or none. numba
files its builds by the folder of the source, and ours by a digest of what a kernel imports. So the
kernels that no edit touches are taken over under the copy's folder's name, and only the others are
compiled. Links are safe: numba replaces files and never writes into them. When sources change, what
did not change stays as it is, and so does what was compiled of it.
"""

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.exam import switch
from harness.exam.mutant import NONE, Mutant, MutantError, Side, load_all
from harness.exam.planting import SWITCH, Unplantable, planted
from harness.kernel import cache_root
from harness.orchestrate import namespaces
from harness.orchestrate.privileges import REPOSITORY
from harness.orchestrate.process import LocalProcess
from harness.orchestrate.subject import OURS, Pair, Subject

STORE = "planted"
"""Beside the compiled kernels."""
PACKAGES = ("driver", "harness")
UNCOMPILED = (
    *("harness/cli/", "harness/exam/", "harness/orchestrate/"),
    *("harness/replay/", "harness/verdict/"),
)
"""Rooms that no process of a subject enters."""
PROGRAMS = {
    "netns": ("-m", "driver.warm_up", "--mode", "SHARED", "--patience", "60"),
    "sim": ("-m", "harness.simulator", "warm-up"),
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
    home = folder.resolve() / hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:16]
    texts = _texts(every)
    home.mkdir(parents=True, exist_ok=True)
    environment = _environment(home)
    with (home / LOCK).open("w") as lock:
        # Of two that want the same at once the second finds it made.
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = _update(home / "tree", texts)
        compiled = home / f"{COMPILED}-{fidelity}"
        if not compiled.is_file() or compiled.read_text() != digest:
            seed_kernels(cache_root(), home / "kernels", home / "tree")
            tell("the driver with all mutants is made anew, and compiled as far as it changed")
            _compile(fidelity, environment, home)
            compiled.write_text(digest)
    number = 0 if mutant is None else 1 + [each.name for each in every].index(mutant.name)
    return {**environment, switch.VARIABLE: str(number)}


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
    found = {SWITCH: Path(switch.__file__).read_text(encoding="utf-8")}
    for file in dict.fromkeys(each.file for each in mutants):
        text = (REPOSITORY / file).read_text(encoding="utf-8")
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
        "PYTHONPATH": os.pathsep.join([str(home / "tree"), str(REPOSITORY)]),
        # Without it, Python looks into the working directory first, where the sound driver is.
        "PYTHONSAFEPATH": "1",
        "WINDTUNNEL_KERNEL_CACHE": str(home / "kernels"),
    }


def _update(tree: Path, texts: dict[str, str]) -> str:
    """Make the copy what it should be, file by file. Returns a digest of what may be compiled."""
    paths = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    sources = {path.relative_to(REPOSITORY).as_posix(): path for path in paths}
    digest = hashlib.sha256()
    for name in sorted({*sources, *texts}):
        wanted = texts[name].encode() if name in texts else sources[name].read_bytes()
        file = tree / name
        if not file.is_file() or file.read_bytes() != wanted:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(wanted)
        if name not in texts:
            # numba asks a build for the time of its source.
            shutil.copystat(sources[name], file)
        if not name.startswith(UNCOMPILED):
            digest.update(name.encode() + b"\0" + hashlib.sha256(wanted).digest())
    for file in tree.rglob("*.py"):
        if file.relative_to(tree).as_posix() not in {*sources, *texts}:
            file.unlink()
    return digest.hexdigest()


def seed_kernels(source: Path, target: Path, tree: Path) -> int:
    """Link the compiled kernels of the repository's packages into the copy's store.

    Returns: how many files were linked
    """
    renamed = _build_folders(tree)
    count = 0
    target.mkdir(parents=True, exist_ok=True)
    for module in source.iterdir() if source.is_dir() else ():
        for build in module.iterdir() if module.is_dir() else ():
            if build.name in renamed:
                count += _link_files(build, target / module.name / renamed[build.name])
    return count


def _build_folders(tree: Path) -> dict[str, str]:
    """What numba calls the folder of the builds of each of our source folders -> of its copy."""
    found = {}
    for package in PACKAGES:
        for folder, _, _ in os.walk(REPOSITORY / package):
            copied = tree / Path(folder).relative_to(REPOSITORY)
            found[_build_folder(Path(folder))] = _build_folder(copied)
    return found


def _build_folder(folder: Path) -> str:
    """Source: numba's cache locators."""
    return f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"


def _link_files(source: Path, target: Path) -> int:
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for file in source.iterdir():
        if (target / file.name).exists():
            continue
        try:
            (target / file.name).hardlink_to(file)
        except FileNotFoundError:
            # Another process has just replaced it.
            continue
        except OSError:
            shutil.copyfile(file, target / file.name)
        count += 1
    return count


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
