"""Machine code is kept on disk, never served stale, and never made twice."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from driver.base import jit
from tests.stand_ins.kept_builds import Kept

CALLEE = """
from driver.base.jit import kernel
FACTOR = {factor}
@kernel
def scaled(value):
    return value * FACTOR
"""
CALLER = """
from driver.base.jit import kernel
from driver.{package} import (
    callee,  # a comment
)
@kernel
def twice(value):
    return callee.scaled(value) + callee.scaled(value)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small package of two kernels in a tree of its own."""
    folder = tmp_path / "driver" / "small"
    folder.mkdir(parents=True)
    (tmp_path / "driver" / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "callee.py").write_text(CALLEE.format(factor=3))
    (folder / "caller.py").write_text(CALLER.format(package="small"))
    (folder / "stranger.py").write_text("")
    monkeypatch.setattr(jit, "PACKAGE_ROOT", tmp_path)
    forget()
    yield folder
    forget()


def forget() -> None:
    """What a new process would not know."""
    for remembered in (jit.fingerprint, jit.imports_of, jit._source):
        remembered.cache_clear()


def test_a_changed_callee_has_another_folder(package: Path) -> None:
    before = jit.fingerprint(package / "caller.py")
    (package / "callee.py").write_text(CALLEE.format(factor=4))
    forget()
    assert jit.fingerprint(package / "caller.py") != before


def test_an_unchanged_closure_keeps_its_folder(package: Path) -> None:
    before = jit.fingerprint(package / "caller.py")
    (package / "stranger.py").write_text("FACTOR = 5")
    os.utime(package / "callee.py", (1, 1))
    forget()
    assert jit.fingerprint(package / "caller.py") == before
    assert jit.fingerprint(package / "callee.py") != before


def test_checked_builds_have_a_folder_of_their_own(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = jit.fingerprint(package / "caller.py")
    monkeypatch.setattr(jit, "BOUNDS_CHECKED", not jit.BOUNDS_CHECKED)
    forget()
    assert jit.fingerprint(package / "caller.py") != before


def test_the_closure_follows_imports_of_imports(package: Path) -> None:
    (package / "top.py").write_text("import driver.small.caller\n")
    names = {path.name for path in jit.closure_of(package / "top.py")}
    assert names >= {"top.py", "caller.py", "callee.py"}
    assert "stranger.py" not in names


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDTUNNEL_KERNEL_CACHE", "/somewhere/else")
    assert jit.cache_root() == Path("/somewhere/else")
    monkeypatch.delenv("WINDTUNNEL_KERNEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert jit.cache_root() == Path("/cache/windtunnel/kernels")


TWICE_SEVEN = "from driver.caller import twice; print(twice(7))"
AT_HAND = """
from driver.base.jit import compile_for
from driver.caller import twice
compile_for(twice, (0,))
called, misses = twice(7), sum(twice.stats.cache_misses.values())
print(called, len(twice.signatures), misses, sum(twice.stats.cache_hits.values()))
"""


def start_package(tmp_path: Path) -> Callable[..., tuple[str, dict[Path, int]]]:
    """A package with a kernel and its callee; answers how to run it in a process of its own."""
    real = Path(jit.__file__).parents[1]
    shutil.copytree(real / "base", tmp_path / "driver" / "base")
    shutil.copy(real / "__init__.py", tmp_path / "driver")
    (tmp_path / "driver" / "callee.py").write_text(CALLEE.format(factor=3))
    caller = CALLER.format(package="x").replace("driver.x ", "driver ")
    (tmp_path / "driver" / "caller.py").write_text(caller)
    cache = tmp_path / "cache"

    def run(program: str = TWICE_SEVEN) -> tuple[str, dict[Path, int]]:
        environment = {key: value for key, value in os.environ.items() if "NUMBA" not in key}
        # Python itself would serve stale bytecode of a file that changes within a second at one
        # length.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        answer = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment | {"WINDTUNNEL_KERNEL_CACHE": str(cache)},
            capture_output=True,
            text=True,
            check=True,
        )
        built = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}
        return answer.stdout.strip(), built

    return run


def test_a_new_process_serves_no_stale_code_and_compiles_nothing_twice(tmp_path: Path) -> None:
    run = start_package(tmp_path)
    first, built = run()
    assert first == "42"
    assert built
    assert {path.parent / jit.LOCK_FILE for path in built} == set(tmp_path.rglob(jit.LOCK_FILE))
    assert run() == (first, built)
    (tmp_path / "driver" / "callee.py").write_text(CALLEE.format(factor=4))
    changed, rebuilt = run()
    assert changed == "56"
    assert built.items() < rebuilt.items()


def test_a_kernel_can_be_had_before_it_is_called(tmp_path: Path) -> None:
    run = start_package(tmp_path)
    told, built = run(AT_HAND)
    assert told == "42 1 1 0"
    assert run(AT_HAND) == ("42 1 0 1", built)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_what_is_damaged_is_compiled_anew(tmp_path: Path, kind: str) -> None:
    run = start_package(tmp_path)
    _, built = run()
    for path in (item for item in built if item.suffix == f".{kind}"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert run()[0] == "42"


def test_a_build_for_a_type_that_nobody_knows_any_more_is_passed_over(tmp_path: Path) -> None:
    run = start_package(tmp_path)
    _, built = run()
    for path in (item for item in built if item.suffix == ".nbi"):
        content = path.read_bytes()
        assert b"numba.core.types" in content
        path.write_bytes(content.replace(b"numba.core.types", b"numba.gone.types"))
    assert run()[0] == "42"


def test_processes_save_builds_one_at_a_time(tmp_path: Path) -> None:
    kept = Kept(tmp_path, jit.LOCK_FILE)
    jit._save_one_by_one(kept)
    kept.save("key", "data")
    kept.save("key", "data")
    assert kept.could_others == [False, False]
