"""Digests depend on the source code that determines the machine code, and on nothing else."""

import json
import stat
from pathlib import Path

import pytest

from windtunnel.driver.kernels.sources import Sources, summarize

LEAF = """\
"A leaf."
from windtunnel.driver.kernels.jit import kernel


@kernel
def leaf(x):
    "Add."
    return x + 1  # why
"""
TOP = "from windtunnel.driver.room.leaf import leaf\n\n\ndef top(x):\n    return leaf(x) * 10\n"


@pytest.fixture
def tree(tmp_path):
    room = tmp_path / "driver" / "room"
    room.mkdir(parents=True)
    for file, text in {
        "../__init__.py": "", "__init__.py": "", "leaf.py": LEAF, "top.py": TOP, "apart.py": "",
    }.items():  # fmt: skip
        (room / file).write_text(text)
    return room


def digest(tree: Path, name: str, store: Path | None = None) -> str:
    return Sources(tree.parents[1], store).digest(tree / name)


@pytest.mark.parametrize(
    ("old", "new"), [("x + 1", "x + 2"), ("def leaf", "def other"), ("@kernel\n", "")]
)
def test_a_change_of_a_callee_changes_its_callers(tree, old, new):
    before = digest(tree, "top.py"), digest(tree, "leaf.py"), digest(tree, "apart.py")
    (tree / "leaf.py").write_text(LEAF.replace(old, new))
    after = digest(tree, "top.py"), digest(tree, "leaf.py"), digest(tree, "apart.py")
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False, True]


@pytest.mark.parametrize(
    ("old", "new"),
    [('"A leaf."', ""), ('    "Add."\n', "\n\n"), ("  # why", ""), ("x + 1", "(x  +  1)")],
)
def test_comments_and_docstrings_change_nothing(tree, old, new):
    before = digest(tree, "top.py")
    (tree / "leaf.py").write_text(LEAF.replace(old, new))
    assert digest(tree, "top.py") == before


def test_a_docstring_of_an_attribute_or_of_an_empty_body_changes_nothing():
    assert summarize(b"A = 1\n'what A is'\n") == summarize(b"A = 1\n")
    assert summarize(b"class C:\n    'text'\n") == summarize(b"class C:\n    pass\n")
    assert summarize(b"A = 'text'\n").digest != summarize(b"A = 'other'\n").digest


def test_imports_of_this_package_are_found_in_every_kind_of_block():
    source = b"""
def f():
    try:
        import windtunnel.a.one
    except E:
        import windtunnel.b
    else:
        from windtunnel.c import d
    finally:
        match x:
            case 1:
                import windtunnel.e, windtunnels
    with y:
        while z:
            if w:
                pass
            else:
                import windtunnel.g, numpy
    async def h():
        for i in j:
            from windtunnel import k
"""
    assert summarize(source).imports == (
        "windtunnel", "windtunnel.a.one", "windtunnel.b", "windtunnel.c", "windtunnel.c.d",
        "windtunnel.e", "windtunnel.g", "windtunnel.k",
    )  # fmt: skip


def test_a_caller_does_not_change_its_callee(tree):
    before = digest(tree, "leaf.py")
    (tree / "top.py").write_text(TOP + "MORE = 1\n")
    assert digest(tree, "leaf.py") == before


def test_the_path_of_the_checkout_changes_nothing(tree, tmp_path):
    before = digest(tree, "top.py")
    (tmp_path / "driver").rename(tmp_path / "moved")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "moved").rename(tmp_path / "elsewhere" / "driver")
    assert digest(tmp_path / "elsewhere" / "driver" / "room", "top.py") == before


def test_imports_are_followed_in_every_form(tree):
    (tree / "a.py").write_text("import windtunnel.driver.room.leaf\nimport os\n")
    (tree / "b.py").write_text(
        "def late():\n    from windtunnel.driver.room import (\n        a as x,  # why\n    )\n"
    )
    found = Sources(tree.parents[1]).closure(tree / "b.py")
    assert [path.name for path in found] == ["__init__.py", "a.py", "b.py", "leaf.py"]


def test_summaries_are_stored_and_damage_to_them_is_harmless(tree, tmp_path, monkeypatch):
    store = tmp_path / "cache" / "summaries.json"
    known = Sources(tree.parents[1], store)
    before = known.digest(tree / "top.py")
    assert not store.exists()
    known.save()
    assert len(json.loads(store.read_text())) == 2
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    with monkeypatch.context() as patched:
        patched.setattr("windtunnel.driver.kernels.sources.summarize", lambda _: pytest.fail("no"))
        assert digest(tree, "top.py", store) == before
    for damage in ("", "[]", '{"a": 1}', "\xff"):
        store.write_text(damage)
        assert digest(tree, "top.py", store) == before
