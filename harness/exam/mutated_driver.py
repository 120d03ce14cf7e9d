"""A mutant made real: a copy of the driver with one edit, and compiled kernels beside it.

    <folder>/<mutant>/
      tree/driver/...   the copy; first on the path of the subject's processes
      kernels/...       compiled kernels: links to those of today's driver, and the others
      made              a digest of what the copy was made from, written last

numba files its builds by the folder of the source and the driver by a digest of what a kernel
imports. So the kernels that the edit did not change are taken over under the copy's folder's name,
and only the others are compiled. Links are safe: numba replaces files and never writes into them.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.exam.mutant import Mutant, MutantError, Side
from harness.kernel import cache_root
from harness.orchestrate import namespaces
from harness.orchestrate.privileges import REPOSITORY
from harness.orchestrate.process import LocalProcess
from harness.orchestrate.subject import OURS, Pair, Subject

MUTANTS = ".mutants"
"""Below a folder of suites: its mutated drivers."""
PACKAGES = ("driver", "harness")
WARM_UP_PATIENCE_S = 10
WARM_UP_LIMIT_S = 300.0
MADE = "made"
WARM_UP_LOG = "warm-up.log"


def prepare(
    mutant: Mutant, folder: Path, tell: Callable[[str], None] = lambda text: None
) -> dict[str, str]:
    """Make the mutant's driver below a folder, with its kernels compiled, unless it is there.

    Returns: the variables of processes that use it. Raises MutantError when the edit does not fit
    today's driver.
    """
    home = folder.resolve() / mutant.name
    text = mutant.applied((REPOSITORY / mutant.file).read_text(encoding="utf-8"))
    digest = _digest(mutant.file, text)
    made = home / MADE
    environment = _environment(home)
    if made.is_file() and made.read_text() == digest:
        return environment
    shutil.rmtree(home, ignore_errors=True)
    tree = home / "tree"
    shutil.copytree(
        REPOSITORY / "driver", tree / "driver", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tree / mutant.file).write_text(text, encoding="utf-8")
    seed_kernels(cache_root(), home / "kernels", tree)
    tell(f"compiling what mutant {mutant.name} changes")
    _compile(environment, home)
    made.write_text(digest)
    return environment


def planted(pair: Pair, mutant: Mutant, environment: dict[str, str]) -> Pair:
    """The pair with the mutant on its side; MutantError where another driver stands there."""

    def on(side: Side, sound: Subject) -> Subject:
        if mutant.side not in (side, "both"):
            return sound
        if sound.name != OURS.name:
            raise MutantError(f"mutant {mutant.name} is the {side}'s, which is {sound.name} here")
        return replace(sound, mutant=mutant.name, environment={**sound.environment, **environment})

    return Pair(on("sender", pair.publisher), on("receiver", pair.subscriber))


def _environment(home: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": os.pathsep.join([str(home / "tree"), str(REPOSITORY)]),
        # Without it, Python looks into the working directory first, where the sound driver is.
        "PYTHONSAFEPATH": "1",
        "WINDTUNNEL_KERNEL_CACHE": str(home / "kernels"),
    }


def _digest(file: str, text: str) -> str:
    """Of all sources of the driver, one of them edited."""
    digest = hashlib.sha256()
    for path in sorted((REPOSITORY / "driver").rglob("*.py")):
        name = path.relative_to(REPOSITORY).as_posix()
        source = text.encode() if name == file else path.read_bytes()
        digest.update(name.encode() + b"\0" + hashlib.sha256(source).digest())
    return digest.hexdigest()


def seed_kernels(source: Path, target: Path, tree: Path) -> int:
    """Link the compiled kernels of the repository's packages into a mutant's store.

    Returns: how many files were linked
    """
    renamed = _build_folders(tree)
    count = 0
    target.mkdir(parents=True)
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
            # The harness is not copied, so its kernels keep their place.
            found[_build_folder(Path(folder))] = _build_folder(
                copied if package == "driver" else Path(folder)
            )
    return found


def _build_folder(folder: Path) -> str:
    """Source: numba's cache locators."""
    return f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"


def _link_files(source: Path, target: Path) -> int:
    target.mkdir(parents=True)
    count = 0
    for file in source.iterdir():
        try:
            (target / file.name).hardlink_to(file)
        except FileNotFoundError:
            # Another process has just replaced it.
            continue
        except OSError:
            shutil.copyfile(file, target / file.name)
        count += 1
    return count


def _compile(environment: dict[str, str], home: Path) -> None:
    """Let the mutant speak to itself once, so that no run waits for a compiler.

    A mutant may fail at that, and often does; what it compiled until then is all that is wanted.
    """
    running = LocalProcess(
        "warm-up",
        [
            *("nice", sys.executable, "-m", "driver.warm_up"),
            *("--mode", "SHARED", "--patience", str(WARM_UP_PATIENCE_S)),
        ],
        env={**namespaces.environment(), **environment},
        cwd=home,
        log=home / WARM_UP_LOG,
    )
    try:
        running.wait(WARM_UP_LIMIT_S)
    finally:
        running.kill()
