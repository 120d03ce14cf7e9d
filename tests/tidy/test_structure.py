"""The structure of the product: small folders, no import circles, and packages that are built."""

from collections import Counter
from pathlib import Path

from tests.tidy import import_graph

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("driver", "harness", "reports")
MODULES_MAX = 20
"""Maximum number of modules in one folder, without `__init__`."""


def test_a_circle_is_found_and_a_chain_is_not():
    chain = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert import_graph.cycles(chain) == []
    assert import_graph.cycles(chain | {"c": {"a"}}) == [["a", "b", "c"]]
    assert import_graph.cycles(chain | {"d": {"e"}, "e": {"d", "a"}}) == [["d", "e"]]


def test_imports_are_found_in_every_form():
    known = {"windtunnel.a", "windtunnel.a.b", "windtunnel.c"}
    text = (
        "from typing import TYPE_CHECKING\nfrom windtunnel.a import b, other\n"
        "if TYPE_CHECKING:\n    import windtunnel.c\n"
    )
    assert import_graph.imports(text, known) == known
    late = "def f():\n    from windtunnel.a.b import g\n"
    assert import_graph.imports(late, known) == {"windtunnel.a.b"}


def test_no_modules_import_each_other():
    files = import_graph.modules(ROOT, FOLDERS)
    assert len(files) > 500
    assert import_graph.cycles(import_graph.graph(files)) == []


def test_no_folder_has_too_many_modules():
    counts = Counter(
        path.parent.relative_to(ROOT).as_posix()
        for path in import_graph.modules(ROOT, FOLDERS).values()
        if path.name != "__init__.py"
    )
    assert {folder: count for folder, count in counts.items() if count > MODULES_MAX} == {}
