"""Reasons of generated mutants that survive."""

import pytest

from windtunnel.harness.exam.generated import generation
from windtunnel.harness.exam.generated.generation import generate
from windtunnel.harness.exam.generated.reasons import reasons
from windtunnel.harness.installation import ROOT

KNOWN = [(file, edit) for file, edits in reasons().items() for edit in edits]


@pytest.mark.parametrize(("file", "edit"), KNOWN)
def test_a_reason_is_about_lines_of_the_file(file, edit):
    before, _, after = edit.partition(" -> ")
    assert before != after
    assert before in " ".join((ROOT / file).read_text().split())
    assert reasons()[file][edit].endswith(".")


def test_a_mutant_with_a_reason_shows_it(monkeypatch):
    (plain,) = generate(1, 5)
    assert plain.survives_because == ""
    before, after = (" ".join(each.split()) for each in (plain.find, plain.replace))
    known = {plain.file: {f"{before} -> {after}": "Why not."}}
    monkeypatch.setattr(generation, "reasons", lambda: known)
    (explained,) = generate(1, 5)
    assert explained.survives_because == "Why not."
    assert explained.model_copy(update={"survives_because": ""}) == plain
