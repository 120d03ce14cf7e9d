"""Generated mutants depend on the count, the seed and the sources, and each can be planted."""

import ast
from collections import Counter
from itertools import pairwise

import pytest

from windtunnel.harness.exam import mutant_set
from windtunnel.harness.exam.generated.generation import (
    editable_functions,
    generate,
    number_of,
    set_of,
)
from windtunnel.harness.exam.generated.scenario_choice import CANDIDATES
from windtunnel.harness.exam.mutant import NONE, MutantError
from windtunnel.harness.exam.mutation_source import with_mutants
from windtunnel.harness.installation import ROOT

COUNT, MERGED = 80, 24


@pytest.fixture(scope="module")
def mutants():
    return generate(COUNT, 7)


def test_equal_seeds_give_equal_mutants_and_other_seeds_others(mutants):
    edits = {(each.file, each.find, each.replace) for each in mutants}
    assert generate(COUNT, 7) == mutants
    assert len(edits) == COUNT
    others = {(each.file, each.find, each.replace) for each in generate(COUNT, 8)}
    assert len(edits & others) < COUNT / 4


def test_modules_have_equal_weight(mutants):
    counts = Counter(each.file for each in mutants).values()
    assert max(counts) <= 2
    assert len(counts) > 70


def test_each_is_one_edit_of_the_driver_that_can_be_merged(mutants):
    by_file = {}
    for number, each in enumerate(mutants[:MERGED], 1):
        text = (ROOT / each.file).read_text(encoding="utf-8")
        by_file.setdefault(each.file, (text, {}))[1][number] = each.applied(text)
    for text, edited in by_file.values():
        ast.parse(with_mutants(text, edited))


@pytest.mark.full
def test_a_name_contains_the_set_of_its_mutant(mutants):
    planted = mutant_set.of_name(mutants[41].name)
    assert planted.name == f"generated-{COUNT}-7"
    assert planted.chosen(mutants[41].name) == mutants[41]
    assert planted.chosen(f"generated-{COUNT}-7-000") is None
    with pytest.raises(MutantError, match=f"generated-{COUNT}-7-{COUNT + 1:03}"):
        planted.chosen(f"generated-{COUNT}-7-{COUNT + 1:03}")


def test_other_names_belong_to_the_written_mutants():
    for name in (NONE, "resend-never", "generated-1-2", "generated--1-2-3", "generated-1-2-3x"):
        assert set_of(name) is None
    planted = mutant_set.of_name("resend-never")
    assert planted.name == ""
    assert planted.chosen(NONE) is None
    with pytest.raises(MutantError, match="no-such-mutant"):
        planted.chosen("no-such-mutant")


@pytest.mark.parametrize("count", [0, 10_001])
def test_a_count_out_of_range_is_refused(count):
    with pytest.raises(MutantError, match=f"found {count}"):
        generate(count, 1)


def test_a_mutant_has_all_candidates_and_its_number(mutants):
    assert {each.scenarios for each in mutants} == {CANDIDATES}
    assert [number_of(each.name) for each in mutants] == list(range(1, COUNT + 1))
    with pytest.raises(ValueError, match="resend-never"):
        number_of("resend-never")


def test_names_are_in_order(mutants):
    assert all(one.name < other.name for one, other in pairwise(mutants))


def test_constructors_and_functions_called_at_import_are_left_out():
    tree = ast.parse(
        "class A:\n    def __init__(self): ...\n    @property\n    def a(self): ...\n"
        "    @staticmethod\n    def b(): ...\n@kernel\ndef c(): ...\ndef d(): ...\n"
        "def at_import(): ...\nX = [at_import()]\nTABLE = {0: d}\n"
    )
    assert [each.name for each in editable_functions(tree)] == ["c", "d", "a"]
