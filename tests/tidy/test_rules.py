"""Each rule rejects a bad text, and accepts the nearest good one."""

import pytest

from tests.tidy import rules

BODY = "    x = 1\n"
LONG = "def f():\n" + BODY * rules.FUNCTION_LINES_MAX
FITTING = "def f():\n" + BODY * (rules.FUNCTION_LINES_MAX - 1)
MARKER = "TO" + "DO"
REGISTRY = "py" + "pi.org"
HOUSE = "/wo" + "rk/main"
MAKEFILE = "help: ## list\n\nrun: ## go\n"


@pytest.mark.parametrize(
    ("rule", "path", "bad", "good"),
    [
        (rules.too_many_lines, "a.py", "x\n" * 391, "x\n" * 390),
        (rules.too_many_lines, "tests/a.py", "x\n" * 601, "x\n" * 600),
        (rules.too_wide, "a.py", "x" * 101, "x" * 100),
        (rules.long_functions, "a.py", LONG, FITTING),
        (rules.long_functions, "a.py", "async " + LONG, "async " + FITTING),
        (rules.long_functions, "a.py", "class C:\n" + " def m(s):\n" + "  x = 1\n" * 70, "x = 1"),
        (rules.modules_away_from_home, "driver/wire/a.py", "import numba", "import numpy"),
        (rules.modules_away_from_home, "harness/verdict/a.py", "from numba import njit", ""),
        (rules.modules_away_from_home, "driver/cnc/a.py", "import mmap", "import os"),
        (rules.modules_away_from_home, "harness/cli/a.py", "def f():\n import subprocess", ""),
        (rules.modules_away_from_home, "reports/a.py", "import docker.errors", "import docking"),
        (rules.modules_away_from_home, "harness/a.py", "import pyspark.sql", ""),
        (rules.no_module_docstring, "a.py", "x = 1", '"""What it is."""\nx = 1'),
        (rules.no_module_docstring, "a.py", "", '"""What it is."""'),
        (rules.markers, "a.py", f"# {MARKER}: later", "# todos are kept elsewhere"),
        (rules.machine_paths, "a.md", f"see {HOUSE}/x", "see /work/mainly"),
        (rules.machine_paths, "a.md", "cd /ro" + "ot", "cd a/root"),
        (rules.machine_paths, "a.md", "in /ho" + "me/anna", "in /home"),
        (rules.registry_hosts, "a.md", f"https://{REGISTRY}/simple", "https://example.org"),
    ],
)
def test_rejects_the_bad_text_and_accepts_the_good_one(rule, path, bad, good):
    assert rule(path, bad)
    assert not rule(path, good)


def test_a_restricted_module_may_be_imported_where_it_belongs():
    assert not rules.modules_away_from_home("driver/kernels/jit.py", "import numba")
    assert not rules.modules_away_from_home("driver/files/mapping.py", "import mmap")


def test_finds_broken_links_only():
    text = "[a](there.md) [b](missing.md#part) [c](https://example.org) ![d](shot.png)"
    found = rules.broken_links("README.md", text, lambda target: target == "there.md")
    assert found == ["README.md: the link missing.md leads nowhere"]


def test_finds_make_targets_that_do_not_exist():
    assert rules.unknown_make_targets(".ci/run", "make run\n", MAKEFILE) == []
    assert rules.unknown_make_targets(".ci/run", "make fly\n", MAKEFILE) == [
        ".ci/run: make fly does not exist"
    ]
    assert rules.unknown_make_targets("README.md", "type `make fly ARGS=1`", MAKEFILE)
