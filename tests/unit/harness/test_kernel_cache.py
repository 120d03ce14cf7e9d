"""Compiled code is kept per module and per content: a change is never served stale."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.kernel import (
    LOCK_FILE,
    _save_one_by_one,
    cache_folder,
    cache_root,
    imported_files,
    reachable_files,
)
from tests.stand_ins.kept_builds import Kept

LEAF = "from harness.kernel import kernel\n\n\n@kernel\ndef leaf(x):\n    return x + {value}\n"
TOP = (
    "from harness.kernel import kernel\nfrom harness.leaf import leaf\n\n\n"
    "@kernel\ndef top(x):\n    return leaf(x) * 10\n\n\nprint(top(1))\n"
)


@pytest.fixture
def tree(tmp_path):
    """A package of the same name with one kernel that calls another in another file."""
    package = tmp_path / "source" / "harness"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    real = Path(sys.modules["harness.kernel"].__file__)
    (package / "kernel.py").write_text(real.read_text())
    (package / "leaf.py").write_text(LEAF.format(value=1))
    (package / "top.py").write_text(TOP)
    (package / "apart.py").write_text("VALUE = 1\n")
    return package


def folder(tree, name):
    """The cache folder as a fresh process would name it."""
    for cached in (imported_files, cache_folder):
        cached.cache_clear()
    return cache_folder(tree / name, tree.parent)


def test_a_changed_callee_in_another_file_gets_a_new_folder(tree):
    before = folder(tree, "top.py"), folder(tree, "leaf.py"), folder(tree, "apart.py")
    (tree / "leaf.py").write_text(LEAF.format(value=2))
    after = folder(tree, "top.py"), folder(tree, "leaf.py"), folder(tree, "apart.py")
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert before[2] == after[2]


def test_what_did_not_change_keeps_its_folder(tree):
    before = folder(tree, "top.py")
    (tree / "apart.py").write_text("VALUE = 2\n")
    (tree / "top.py").touch()
    assert folder(tree, "top.py") == before


def test_a_caller_does_not_change_its_callee(tree):
    before = folder(tree, "leaf.py")
    (tree / "top.py").write_text(TOP + "# more\n")
    assert folder(tree, "leaf.py") == before


def test_a_bounds_checked_build_has_its_own_folder(tree, monkeypatch):
    before = folder(tree, "top.py")
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert folder(tree, "top.py") != before


def test_imports_are_followed_through_every_form(tree):
    (tree / "room").mkdir()
    (tree / "room" / "__init__.py").write_text("")
    (tree / "room" / "a.py").write_text("import harness.leaf\nimport os\n")
    (tree / "room" / "b.py").write_text(
        "def late():\n    from harness.room import (\n        a as x,\n    )\n"
    )
    imported_files.cache_clear()
    found = {
        file.relative_to(tree).as_posix()
        for file in reachable_files(tree / "room/b.py", tree.parent)
    }
    assert found == {"room/b.py", "room/__init__.py", "room/a.py", "leaf.py", "kernel.py"}


def test_the_cache_lies_where_it_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("WINDTUNNEL_KERNEL_CACHE", raising=False)
    assert cache_root() == tmp_path / "xdg" / "windtunnel" / "kernels"
    monkeypatch.setenv("WINDTUNNEL_KERNEL_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"


def run(tree, cache, **more):
    """Import the top module in a new process and return what it computed."""
    wanted = {"PATH", "LD_LIBRARY_PATH", "HOME"}
    env = {key: value for key, value in os.environ.items() if key in wanted}
    env |= {"PYTHONPATH": str(tree.parent), "WINDTUNNEL_KERNEL_CACHE": str(cache), **more}
    # Python itself would serve stale bytecode of a file that changes within a second at one length.
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "harness.top"],
        env=env,
        cwd=tree.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_change_is_never_served_stale(tree, tmp_path):
    cache = tmp_path / "cache"
    assert run(tree, cache) == "20"
    built = sorted(cache.rglob("*.nbc"))
    assert {path.parent / LOCK_FILE for path in built} == set(cache.rglob(LOCK_FILE))
    assert built
    assert run(tree, cache) == "20"
    assert sorted(cache.rglob("*.nbc")) == built
    (tree / "leaf.py").write_text(LEAF.format(value=4))
    assert run(tree, cache) == "50"


def test_without_compiling_kernels_are_plain_python(tree, tmp_path):
    cache = tmp_path / "cache"
    assert run(tree, cache, NUMBA_DISABLE_JIT="1") == "20"
    assert not cache.exists()


def test_processes_save_builds_one_at_a_time(tmp_path):
    kept = Kept(tmp_path, LOCK_FILE)
    _save_one_by_one(kept)
    kept.save("key", "data")
    kept.save("key", "data")
    assert kept.could_others == [False, False]
