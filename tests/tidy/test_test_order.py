"""Files with long time limits run before the others, and the tests of a file stay together."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest

ROOT = Path(conftest.__file__).resolve().parents[1]


class Item(SimpleNamespace):
    __hash__ = object.__hash__


def item(config, name, limit_s=None, full=None):
    markers = {"full": None if full is None else SimpleNamespace(kwargs=full)}
    if limit_s is not None:
        markers["timeout"] = SimpleNamespace(args=(limit_s,))
    path = Path(name.partition(":")[0])
    return Item(name=name, nodeid=name, path=path, config=config, get_closest_marker=markers.get)


def ordered(full, *items_of):
    """Return the names of the tests that run, in order, and of those that are left out."""
    left_out = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    config = SimpleNamespace(getoption=lambda _: full, getini=lambda _: "120", hook=hook)
    items = [item(config, *each) for each in items_of]
    conftest.pytest_collection_modifyitems(config, items)
    return [each.name for each in items], [each.name for each in left_out]


TESTS = (
    ("quick:1", None), ("quick:2", 60), ("long:1", None), ("long:2", 600),
    ("other:1", None), ("longest:1", 900, {}),
)  # fmt: skip


def test_the_longest_limit_of_a_file_decides():
    assert ordered(True, *TESTS)[0] == [
        "longest:1", "long:1", "long:2", "quick:1", "quick:2", "other:1",
    ]  # fmt: skip


def test_tests_that_are_left_out_do_not_count():
    kept, left_out = ordered(False, *TESTS, ("quick:3", 900, {}))
    assert kept == ["long:1", "long:2", "quick:1", "quick:2", "other:1"]
    assert left_out == ["longest:1", "quick:3"]


def test_the_requested_number_of_variants_is_kept():
    variants = [(f"some:1[{number}]", None, {"keep": 3}) for number in range(7)]
    others = [(f"some:12[{number}]", None, {"keep": 1}) for number in range(3)]
    kept, left_out = ordered(
        False, ("some:0", None), *reversed(variants), *others, ("some:2", None, {})
    )
    assert kept == ["some:0", "some:1[4]", "some:1[2]", "some:1[0]", "some:12[0]"]
    assert left_out == [
        "some:1[6]", "some:1[5]", "some:1[3]", "some:1[1]", "some:12[1]", "some:12[2]", "some:2",
    ]  # fmt: skip
    assert len(ordered(True, *variants, *others)[0]) == 10


WHERE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(5))
def test_where(number):
    with open("workers", "a") as file:
        file.write(f"{pathlib.Path(__file__).parent.name} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


@pytest.mark.full
def test_tests_of_a_group_have_a_process_of_their_own(tmp_path):
    for folder in ("netns", "docker", "fuzz"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        for name in ("a", "b"):
            (tmp_path / "tests" / folder / f"test_{folder}_{name}.py").write_text(WHERE)
    (tmp_path / "tests" / "netns" / "test_plugin_x.py").write_text(
        WHERE.replace("__file__).parent.name", "__file__).stem")
    )
    shutil.copy(conftest.__file__, tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    script = (ROOT / ".ci" / "test.sh").read_text()
    command = re.search(r"part alone (.*)", script)
    assert command is not None
    options = command[1].replace('"$@"', "").split()
    argv = [sys.executable, "-m", "pytest", "--part", "alone", *options]
    subprocess.run(argv, cwd=tmp_path, check=True, timeout=100, stdout=subprocess.DEVNULL)
    used = Counter(line for line in (tmp_path / "workers").read_text().splitlines())
    assert sum(used.values()) == 35
    workers = {folder: {each.split()[1] for each in used if folder in each} for folder in
               ("netns", "docker", "fuzz", "test_plugin_x")}  # fmt: skip
    assert [len(each) for each in workers.values()] == [1, 1, 1, 1]
    assert workers["fuzz"] == workers["test_plugin_x"]
    assert len(workers["netns"] | workers["docker"] | workers["fuzz"]) == 3
