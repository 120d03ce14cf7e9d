"""A noun has the form that its count requires."""

import pytest

from windtunnel.harness.artifact.noun_form import noun_for


@pytest.mark.parametrize(("count", "noun"), [(0, "gaps"), (1, "gap"), (2, "gaps"), (11, "gaps")])
def test_only_one_is_singular(count, noun):
    assert noun_for(count, "gap") == noun


def test_an_irregular_plural_is_given():
    assert [noun_for(count, "entry", "entries") for count in (1, 2)] == ["entry", "entries"]
