"""Loads scenario files. Each error names the file, line and column.

    text --YamlDocument--> plain values with marks --extends, sweep--> variants
         --shorthand--> full forms --model--> Scenario --validation--> Scenario

All errors in a file are reported at once. The line and column of each key and item are stored by
path, to locate errors that are found later.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from windtunnel.harness.artifact.escaped_text import escaped
from windtunnel.harness.scenario.error_text import error_text
from windtunnel.harness.scenario.extends import completed, read_document
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.schema.table import Table
from windtunnel.harness.scenario.services import with_services
from windtunnel.harness.scenario.shorthand import expand
from windtunnel.harness.scenario.sweep import variants
from windtunnel.harness.scenario.validation.validation import problems
from windtunnel.harness.scenario.yaml_document import ScenarioError, YamlDocument, quoted

_TABLE = TypeVar("_TABLE", bound=Table)
SUFFIX = ".yaml"
ROOT_FOLDER = "scenarios"
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
__all__ = [
    "LoadedScenario",
    "ScenarioError",
    "load_scenario",
    "load_variants",
    "parse_scenario",
    "parse_table",
]


@dataclass(frozen=True)
class LoadedScenario:
    """A scenario of a file: the only one, or one of the variants of its sweep."""

    scenario: Scenario
    settings: Mapping[str, str] = field(default_factory=dict)
    """The values that differ from the file, by name."""
    sweep: str = ""
    """Name of the scenario whose sweep has this variant, or an empty string."""
    text: str = ""
    """The scenario as a file of its own, if the file does not contain all of it."""


def load_scenario(file: Path, find: Callable[[Scenario], list[Problem]] = problems) -> Scenario:
    """Read and validate a scenario file. Raises ScenarioError with all problems, including those
    that `find` detects. Returns the first variant if there are several.
    """
    return load_variants(file, find)[0].scenario


def load_variants(
    file: Path,
    find: Callable[[Scenario], list[Problem]] = problems,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> list[LoadedScenario]:
    """Read and validate all variants of a scenario file. `settings` are values to set, by name.
    Raises ScenarioError with all problems.
    """
    document = read_document(file)
    has_services = with_services(document, file.parent)
    parts = file.resolve().with_suffix("").parts
    name = document.value.get("name") if isinstance(document.value, dict) else None
    if ROOT_FOLDER in parts and isinstance(name, str):
        start = len(parts) - parts[::-1].index(ROOT_FOLDER)
        expected = "/".join(parts[start:])
        if name != expected:
            text = f"expected {expected!r} (the file's path), found {quoted(name)}"
            raise ScenarioError(document.locate([Problem(("name",), text)]))
    found = []
    errors: list[str] = []
    for each in variants(document, settings):
        sweep = str(name) if each.swept else ""
        is_made = each.document.sources or has_services
        text = _text_of(each.document, file) if is_made else ""
        try:
            scenario = _validated(each.document, Scenario, find, expand)
        except ScenarioError as error:
            errors += error.errors
        else:
            found.append(LoadedScenario(scenario, each.settings, sweep, text))
    if errors:
        raise ScenarioError(dict.fromkeys(errors))
    return found


def _text_of(document: YamlDocument, file: Path) -> str:
    """Return a scenario with all values that were set or are from other files, as a file."""
    # Values that occur twice are written twice, since files have no anchors.
    plain = json.loads(json.dumps(document.value))
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return f"# Made from {escaped(file.name)}.\n{text}"


def parse_scenario(text: str, source: str) -> Scenario:
    """Parse and validate a scenario. `source` is the file name for error messages."""
    document = completed(YamlDocument(text, source), None)
    return _validated(variants(document, {})[0].document, Scenario, problems, expand)


def parse_table(
    text: str,
    source: str,
    model: type[_TABLE],
    find: Callable[[_TABLE], list[Problem]],
    expand: Callable[[Any], list[Problem]] = lambda value: [],
) -> _TABLE:
    """Parse a YAML table into a `model` object. Raises ScenarioError for invalid YAML, and for
    problems that `expand`, pydantic or the function `find` reports.

    `expand` replaces the short forms in the plain values with full forms.
    """
    return _validated(YamlDocument(text, source), model, find, expand)


def _validated(
    document: YamlDocument,
    model: type[_TABLE],
    find: Callable[[_TABLE], list[Problem]],
    expand: Callable[[Any], list[Problem]],
) -> _TABLE:
    empty = list(_empty_values(document.value, ()))
    if empty:
        raise ScenarioError(document.locate(empty))
    short = expand(document.value)
    try:
        table = model.model_validate(document.value)
    except ValidationError as error:
        found = [Problem(_path(each, document), error_text(each, model)) for each in _causes(error)]
        raise ScenarioError(document.locate([*short, *found])) from error
    if short:
        raise ScenarioError(document.locate(short))
    found = find(table)
    if found:
        raise ScenarioError(document.locate(found))
    return table


def _empty_values(value: object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield a problem for each key or item without a value, which would otherwise silently become a
    default.
    """
    if value is None:
        yield Problem(path, "this key has no value: write one, or remove the key")
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield from _empty_values(inner, (*path, key))


def _causes(error: ValidationError) -> list[Any]:
    """Return pydantic's errors without the misleading ones: a list with invalid items is not also
    reported as too short, and if the schema is another, nothing else is reported.
    """
    found = error.errors()
    # The keys of a file of another kind are all wrong.
    of_schema = [each for each in found if each["loc"] == ("schema",)]
    if any(each["type"] == "literal_error" for each in of_schema):
        return of_schema
    inner = {each["loc"][:length] for each in found for length in range(len(each["loc"]))}
    return [each for each in found if each["type"] != "too_short" or each["loc"] not in inner]


def _path(error: Any, document: YamlDocument) -> tuple[str | int, ...]:
    """Return an error's path, reduced to the keys that exist in the file. If a key is missing, the
    path ends with this key.
    """
    path: tuple[str | int, ...] = ()
    for step in error["loc"]:
        if (*path, step) in document.marks:
            path = (*path, step)
    return (*path, error["loc"][-1]) if error["type"] == "missing" else path
