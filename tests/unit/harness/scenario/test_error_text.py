"""Errors of a scenario's values name what was expected, in the terms of a scenario file."""

import pytest

from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario

TEXT = """\
schema: windtunnel/1
name: base
about: A client.
seeds: {root: 1}
network:
  hosts: [a, b]
  link: {between: [a, b]}
applications:
  - {id: client, on: a, command: [ask], expect: {ends_by_itself: true}}
"""


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("{ends_by_itself: true}", "{log_never: GAP}", "a list, such as [a, b], found 'GAP'"),
        ("[ask]", "[ask], ready: x", "a table with keys such as `log`, `within`, found 'x'"),
        ("name: base", "name: my prices", "lower-case letters, digits and -, in parts"),
        ("id: client", "id: Client", "lower-case letters, digits and -, such as feed-1, found"),
        ("root: 1", "root: x", "an integer, found 'x'"),
        ("root: 1", "root: -1", "at least 0, found -1"),
        ("about: A client.", "about: 5", "a text, found 5"),
        ("itself: true", "itself: 3", "true or false, found 3"),
        ("between: [a, b]", "between: [a, b, c]", "at most 2 items, found a list of 3 items"),
        ("name: base", "name: base\nfidelity: [x]", "'netns', 'compose' or 'sim', found 'x'"),
        ("hosts: [a, b]", "hosts: {a: b}", "a list, such as [a, b], found a table of 1 item"),
    ],
)
def test_an_error_names_what_was_expected(old: str, new: str, text: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TEXT.replace(old, new), "made.yaml")
    (error,) = caught.value.errors
    assert f": expected {text}" in error
