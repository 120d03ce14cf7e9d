"""A source text with all versions behaves like the version that a number selects."""

import ast
import types

import pytest

from windtunnel.harness.exam.mutation_source import MutationError, activating, with_mutants

SOURCE = '''"""What it is."""

from __future__ import annotations

LIMIT = 3


@kernel
def half(value):
    """A half."""
    return value // 2


def scaled(value, *more, by=2, **rest):
    return value * by + sum(more) + len(rest)


class Counter:
    """Counts."""

    def __init__(self, first: int) -> None:
        self.value = first

    def add(
        self, more: int
    ) -> int:
        # Why.
        self.value += more
        return self.value
'''


def edited(*pairs: tuple[str, str]) -> dict[int, str]:
    found = {}
    for number, (old, new) in enumerate(pairs, 1):
        assert SOURCE.count(old) == 1
        found[number] = SOURCE.replace(old, new)
    return found


def module(text: str, number: int) -> types.ModuleType:
    """Return the text as a module in which a number is active."""
    created = types.ModuleType("made")
    created.__dict__["kernel"] = lambda function: function
    switch = types.SimpleNamespace(number=lambda: number, counted=[])
    switch.outlined_kernel = created.__dict__["kernel"]
    switch.number_in_python = switch.number
    switch.count = lambda at: switch.counted.append(("kernel", at))
    switch.count_in_python = lambda at: switch.counted.append(("python", at))
    lines = [
        line for line in text.splitlines() if line != "from windtunnel.driver.base import planted"
    ]
    created.__dict__["planted"] = switch
    exec(compile("\n".join(lines), "made.py", "exec"), created.__dict__)
    return created


EDITS = edited(
    ("value // 2", "value // 3"),
    ("value * by", "value * by + 1"),
    ("self.value += more", "self.value -= more"),
    ("return value // 2", "return 0"),
    ("self.value = first", "self.value = -first"),
)


@pytest.mark.parametrize(
    ("number", "half", "scaled", "total"),
    [
        (0, 5, 29, 11), (1, 3, 29, 11), (2, 5, 30, 11), (3, 5, 29, 9), (4, 0, 29, 11),
        (5, 5, 29, -9),
    ],
)  # fmt: skip
def test_a_number_selects_the_version(number, half, scaled, total):
    created = module(with_mutants(SOURCE, EDITS), number)
    assert created.half(10) == half
    assert created.scaled(10, 5, by=2, extra=1, another=2) + 2 == scaled
    assert created.Counter(10).add(1) == total


FAMILY = """
class Base:
    def ended(self, slot):
        return [("base", slot)]


class Derived(Base):
    def ended(self, slot):
        return [("derived", slot), *super().ended(slot)]
"""


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_method_reaches_the_version_of_its_base_class(number):
    """The versions of both classes had the same names, so that the base's original was the derived
    one, which called itself endlessly.
    """
    edits = {
        1: FAMILY.replace('"base", slot', '"base", -slot'),
        2: FAMILY.replace('"derived", slot', '"derived", -slot'),
    }
    created = module(with_mutants(FAMILY, edits), number)
    signs = {0: (1, 1), 1: (1, -1), 2: (-1, 1)}[number]
    assert created.Derived().ended(5) == [("derived", 5 * signs[0]), ("base", 5 * signs[1])]


@pytest.mark.parametrize("decorator", ["kernel", "inlined_kernel"])
def test_all_versions_of_a_kernel_are_kernels_that_are_called(decorator):
    edits = {number: text.replace("@kernel", f"@{decorator}") for number, text in EDITS.items()}
    text = with_mutants(SOURCE.replace("@kernel", f"@{decorator}"), edits)
    names = {
        node.name: [ast.unparse(each) for each in node.decorator_list]
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: found for name, found in names.items() if found} == {
        "half": [decorator],
        **{key: ["planted.outlined_kernel"] for key in ("half__0", "half__1", "half__4")},
    }


def test_code_without_an_edit_is_unchanged():
    text = with_mutants(SOURCE, {1: EDITS[1]})
    assert SOURCE[SOURCE.index("def scaled") :] in text
    assert text.startswith('"""What it is."""\n\nfrom __future__ import annotations\n')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("def half(value)", "def half(value, more=0)"),
        ("class Counter:", "class Counter(dict):"),
        ("def scaled(value", "def grown(value"),
    ],
)
def test_an_edit_beyond_functions_is_refused(old, new):
    with pytest.raises(MutationError, match="edit 1"):
        with_mutants(SOURCE, {1: SOURCE.replace(old, new)})


HALF, SCALED, ADDED, CREATED = (
    [("kernel", 1), ("kernel", 4)], [("python", 2)], [("python", 3)], [("python", 5)],
)  # fmt: skip


@pytest.mark.parametrize(
    ("active", "counted"),
    [
        (0, [*HALF, *SCALED, *CREATED, *ADDED]),
        (1, [("kernel", 0), *SCALED, *CREATED, *ADDED]),
        (2, [*HALF, ("python", 0), *CREATED, *ADDED]),
        (3, [*HALF, *SCALED, *CREATED, ("python", 0)]),
    ],
)
def test_executions_of_all_edits_are_counted(active, counted):
    created = module(with_mutants(SOURCE, EDITS), active)
    created.half(10)
    created.scaled(10)
    created.Counter(1).add(1)
    assert created.planted.counted == counted


BRANCHES = """
def sign(value):
    if value < 0:
        return -1
    elif value > 0:
        return 1
    return 0
"""


def test_the_original_counts_a_branch_only_where_it_is_taken():
    edits = [("return -1", "return -2"), ("value > 0", "value > 1"), ("return 0", "return 9")]
    texts = {number: BRANCHES.replace(*edit) for number, edit in enumerate(edits, 1)}
    created = module(with_mutants(BRANCHES, texts), 0)
    for value, counted in ((-5, [1, 2]), (5, [2]), (0, [2, 3])):
        created.planted.counted.clear()
        created.sign(value)
        assert sorted(at for _, at in created.planted.counted) == counted


def test_a_program_activates_the_mutant_of_its_environment():
    program = '"""A program."""\n\nfrom __future__ import annotations\n\nimport sys\n'
    assert activating(program).splitlines()[3:] == [
        "from windtunnel.driver.base import planted",
        "planted.activate()",
        "",
        "import sys",
    ]
