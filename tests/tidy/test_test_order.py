"""Files with long time limits run before the others, and the tests of a file stay together."""

from pathlib import Path
from types import SimpleNamespace

from tests import conftest


def item(config, name, limit_s=None, *, full=False):
    markers = {"full": full or None}
    if limit_s is not None:
        markers["timeout"] = SimpleNamespace(args=(limit_s,))
    path = Path(name.partition(":")[0])
    made = SimpleNamespace(name=name, path=path, config=config, get_closest_marker=markers.get)
    made.add_marker = lambda marker: setattr(made, "group", marker.args[0])
    return made


def ordered(full, *items_of):
    """Return the names of the tests that run, in order, and of those that are left out."""
    left_out = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    config = SimpleNamespace(getoption=lambda _: full, getini=lambda _: "120", hook=hook)
    items = [item(config, *each[:2], full="full" in each) for each in items_of]
    conftest.pytest_collection_modifyitems(config, items)
    return [each.name for each in items], [each.name for each in left_out]


TESTS = (
    ("quick:1", None), ("quick:2", 60), ("long:1", None), ("long:2", 600),
    ("other:1", None), ("longest:1", 900, "full"),
)  # fmt: skip


def test_the_longest_limit_of_a_file_decides():
    assert ordered(True, *TESTS)[0] == [
        "longest:1", "long:1", "long:2", "quick:1", "quick:2", "other:1",
    ]  # fmt: skip


def test_tests_that_are_left_out_do_not_count():
    kept, left_out = ordered(False, *TESTS, ("quick:3", 900, "full"))
    assert kept == ["long:1", "long:2", "quick:1", "quick:2", "other:1"]
    assert left_out == ["longest:1", "quick:3"]


def test_tests_of_namespaces_are_a_group_of_their_own():
    config = SimpleNamespace(getoption=lambda _: True, getini=lambda _: "0")
    items = [
        item(config, f"{conftest.HERE}/{folder}/test_x.py:1")
        for folder in ("netns", "docker", "fuzz")
    ]
    conftest.pytest_collection_modifyitems(config, items)
    assert [each.group for each in items] == ["networks", "others", "others"]
