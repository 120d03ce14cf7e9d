"""Loads scenario files. Each error names the file, line and column.

    text --YamlDocument--> plain values with marks --shorthand--> full forms
         --model--> Scenario --validation--> Scenario

All errors in a file are reported at once. The line and column of each key and item are stored by
path, to locate errors that are found later.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.schema.table import Table
from windtunnel.harness.scenario.shorthand import expand
from windtunnel.harness.scenario.validation.validation import problems
from windtunnel.harness.scenario.yaml_document import ScenarioError, YamlDocument, quoted, read_yaml

_TABLE = TypeVar("_TABLE", bound=Table)
SUFFIX = ".yaml"
ROOT_FOLDER = "scenarios"
__all__ = ["ScenarioError", "load_scenario", "parse_scenario", "parse_table"]


def load_scenario(file: Path, find: Callable[[Scenario], list[Problem]] = problems) -> Scenario:
    """Read and validate a scenario file. Raises ScenarioError with all problems, including those
    that `find` detects.
    """
    text = read_yaml(file)
    scenario = parse_table(text, str(file), Scenario, find, expand)
    parts = file.resolve().with_suffix("").parts
    if ROOT_FOLDER in parts:
        start = len(parts) - parts[::-1].index(ROOT_FOLDER)
        expected = "/".join(parts[start:])
        if scenario.name != expected:
            line, column = YamlDocument(text, str(file)).mark(("name",))
            text = f"expected {expected!r} (the file's path), found {scenario.name!r}"
            raise ScenarioError([f"{file}:{line}:{column}: name: {text}"])
    return scenario


def parse_scenario(text: str, source: str) -> Scenario:
    """Parse and validate a scenario. `source` is the file name for error messages."""
    return parse_table(text, source, Scenario, problems, expand)


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
    document = YamlDocument(text, source)
    empty = list(_empty_values(document.value, ()))
    if empty:
        raise ScenarioError(document.locate(empty))
    short = expand(document.value)
    try:
        table = model.model_validate(document.value)
    except ValidationError as error:
        found = [Problem(_path(each, document), _text(each)) for each in _causes(error)]
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
    reported as too short.
    """
    found = error.errors()
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


def _text(error: Any) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "missing":
        return "this key is missing"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, found {quoted(error['input'])}"
