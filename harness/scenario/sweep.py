"""The variants of a scenario: all combinations of the values in its sweep.

    sweep: {loss: [1%, 5%], delay: [1ms, 40ms]}

    loss 1%, delay 1ms | loss 1%, delay 40ms | loss 5%, delay 1ms | loss 5%, delay 40ms

A variant is a scenario of its own: its name ends with its values. `--set loss=5%` leaves only the
variants with this value, or sets a value that is not in the sweep.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.settings import set_value
from windtunnel.harness.scenario.yaml_document import Mark, ScenarioError, YamlDocument, quoted

KEY = "sweep"
KEYS_MAX = 4
VALUES_MAX = 100
VARIANTS_MAX = 256
PARTS_MAX = 1_000_000
"""Maximum number of values in all variants, which are in memory together."""
NAME_LENGTH_MAX = 100
OPTION = "--set"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Setting:
    """A value that a variant has, and where it is written."""

    name: str
    value: Any
    mark: Mark
    source: str

    @property
    def text(self) -> str:
        """The value as a text, as `--set` expects it."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return str(self.value)


@dataclass(frozen=True)
class Variant:
    """The document of a variant, and its values by name."""

    document: YamlDocument
    settings: Mapping[str, str]
    swept: Mapping[str, str]
    """The values that come from the sweep."""


def variants(document: YamlDocument, chosen: Mapping[str, str]) -> list[Variant]:
    """Return the variants of a document, which is changed. `chosen` has values by name, as texts in
    YAML. Without a sweep, there is one variant. Raises ScenarioError.
    """
    given = [_given(name, text) for name, text in chosen.items()]
    if not isinstance(document.value, dict):
        return [Variant(document, {}, {})]
    swept = _swept(document, document.value.pop(KEY, None))
    fixed = [each for each in given if each.name not in swept]
    for each in given:
        if each.name in swept:
            swept[each.name] = [each]
    count = prod(len(each) for each in swept.values())
    if count > VARIANTS_MAX:
        text = f"expected at most {VARIANTS_MAX} combinations of values, found {count}"
        raise ScenarioError(document.locate([Problem((KEY,), text)]))
    parts = count * len(document.marks)
    if count > 1 and parts > PARTS_MAX:
        text = f"expected at most {PARTS_MAX} values in all variants together, found {parts}"
        raise ScenarioError(document.locate([Problem((KEY,), text)]))
    found: list[Variant] = []
    names: set[str] = set()
    for number, values in enumerate(product(*swept.values()), start=1):
        copy = document.copy()
        for each in (*fixed, *values):
            problems = set_value(copy, each.name, each.value, each.mark, each.source)
            if problems:
                line, column = each.mark
                text = f"{each.source}:{line}:{column}: {problems[0].text}"
                raise ScenarioError([text])
        if values:
            names.add(_rename(copy.value, values, number, names))
        settings = {each.name: each.text for each in (*fixed, *values)}
        found.append(Variant(copy, settings, {each.name: each.text for each in values}))
    return found


def _given(name: str, text: str) -> Setting:
    """Return a value from the command line."""
    source = f"{OPTION} {name}"
    return Setting(name, YamlDocument(text, source).value, (1, 1), source)


def _swept(document: YamlDocument, sweep: Any) -> dict[str, list[Setting]]:
    """Return the values of a sweep by name. Raises ScenarioError."""
    if sweep is None:
        return {}
    problems: list[Problem] = []
    found: dict[str, list[Setting]] = {}
    tables = sweep if isinstance(sweep, dict) else {}
    if not 1 <= len(tables) <= KEYS_MAX:
        text = f"expected a table with 1 to {KEYS_MAX} names and their values, such as "
        problems.append(Problem((KEY,), f"{text}`loss: [1%, 5%]`, found {quoted(sweep)}"))
    for name, values in tables.items():
        plain = values if isinstance(values, list) else []
        if not 1 <= len(plain) <= VALUES_MAX or not all(map(_is_plain, plain)):
            text = f"expected a list of 1 to {VALUES_MAX} values, such as [1%, 5%]"
            problems.append(Problem((KEY, name), f"{text}, found {quoted(values)}"))
            continue
        found[name] = []
        for index, value in enumerate(plain):
            path = (KEY, name, index)
            found[name].append(Setting(name, value, document.mark(path), document.source_of(path)))
        if len({each.text for each in found[name]}) < len(plain):
            problems.append(Problem((KEY, name), "a value occurs twice: remove one of them"))
    if problems:
        raise ScenarioError(document.locate(problems))
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _rename(
    value: dict[str, Any], settings: tuple[Setting, ...], number: int, taken: set[str]
) -> str:
    """Add the values of a variant to its name, or its number if the name would be too long."""
    name = str(value.get("name", ""))
    parts = (f"{each.name.rpartition('.')[2]}-{each.text.replace('%', 'pct')}" for each in settings)
    suffix = _NOT_IN_NAMES.sub("-", "-".join(parts).lower()).strip("-")
    longer = f"{name}/{suffix}"
    if len(longer) > NAME_LENGTH_MAX or longer in taken or not suffix:
        longer = f"{name}/{number}"
    if "name" in value:
        value["name"] = longer
    return longer
