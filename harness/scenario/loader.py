"""From a scenario file to a Scenario, or to an error that names file, line and column.

    text --yaml--> nodes with marks --> plain values --model--> Scenario --sense--> Scenario

All faults of a file are reported at once. A mark is kept for each key and each item, so that a
fault found later, by its path, can be shown where it is written.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.schema.table import Table
from windtunnel.harness.scenario.validation.validation import problems

_TABLE = TypeVar("_TABLE", bound=Table)
SUFFIX = ".yaml"
ROOT_FOLDER = "scenarios"
Mark = tuple[int, int]
"""Line and column, from 1."""


class ScenarioError(ValueError):
    """A scenario that cannot be run; `faults` has a text for each reason, with its place."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


def load_scenario(file: Path) -> Scenario:
    """Read and check a scenario file; ScenarioError holds all that is wrong with it."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError([f"{file}: cannot be read: {error}"]) from error
    scenario = parse_scenario(text, str(file))
    parts = file.resolve().with_suffix("").parts
    if ROOT_FOLDER in parts:
        start = len(parts) - parts[::-1].index(ROOT_FOLDER)
        expected = "/".join(parts[start:])
        if scenario.name != expected:
            line, column = _Document(text, str(file)).mark(("name",))
            fault = f"expected {expected!r}, the file's path, found {scenario.name!r}"
            raise ScenarioError([f"{file}:{line}:{column}: name: {fault}"])
    return scenario


def parse_scenario(text: str, source: str) -> Scenario:
    """Check a scenario's text; `source` is the name by which errors call it."""
    return parse_table(text, source, Scenario, problems)


def parse_table(
    text: str, source: str, model: type[_TABLE], find: Callable[[_TABLE], list[Problem]]
) -> _TABLE:
    """Check the text of a table of any model, then what `find` has against it."""
    document = _Document(text, source)
    try:
        table = model.model_validate(document.value)
    except ValidationError as error:
        found = [Problem(_path(each, document), _text(each)) for each in _causes(error)]
        raise ScenarioError(document.locate(found)) from error
    found = find(table)
    if found:
        raise ScenarioError(document.locate(found))
    return table


def _causes(error: ValidationError) -> list[Any]:
    """The errors without their echoes: a list of nothing but wrong items is not also too short."""
    found = error.errors()
    return [
        each
        for each in found
        if each["type"] != "too_short"
        or not any(
            len(other["loc"]) > len(each["loc"]) and other["loc"][: len(each["loc"])] == each["loc"]
            for other in found
        )
    ]


def _path(error: Any, document: "_Document") -> tuple[str | int, ...]:
    """The part of pydantic's path that is in the file, plus a missing key if that is the fault."""
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
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, found {error['input']!r}"


class _Document:
    """The plain values of a YAML text and the place of each."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.marks: dict[tuple[str | int, ...], Mark] = {(): (1, 1)}
        self._constructor = yaml.SafeLoader("")
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            self.value = {} if node is None else self._build(node, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            raise ScenarioError([f"{source}:{line}:{column}: {error.problem}"]) from error
        except yaml.YAMLError as error:
            raise ScenarioError([f"{source}:1:1: not YAML: {error}"]) from error

    def mark(self, path: tuple[str | int, ...]) -> Mark:
        """Where a path is written, or the nearest table around it."""
        while path not in self.marks:
            path = path[:-1]
        return self.marks[path]

    def locate(self, found: Iterable[Problem]) -> list[str]:
        """The problems as `file:line:column: key.path: text`, in the order of the file."""
        placed = sorted((self.mark(each.path), each.path, each.text) for each in _distinct(found))
        lines = []
        for (line, column), path, text in placed:
            dotted = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
            lines.append(f"{self.source}:{line}:{column}: {dotted + ': ' if dotted else ''}{text}")
        return lines

    def _build(self, node: Node, path: tuple[str | int, ...]) -> Any:
        if isinstance(node, MappingNode):
            table: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                key = self._build_key(key_node)
                if key in table:
                    raise yaml.MarkedYAMLError(
                        problem=f"key {key!r} is there twice", problem_mark=key_node.start_mark
                    )
                self.marks[(*path, key)] = _mark(key_node)
                table[key] = self._build(value_node, (*path, key))
            return table
        if isinstance(node, SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self.marks[(*path, index)] = _mark(item)
                items.append(self._build(item, (*path, index)))
            return items
        return self._constructor.construct_object(node)

    def _build_key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            raise yaml.MarkedYAMLError(
                problem="expected a key that is a word", problem_mark=node.start_mark
            )
        return str(node.value)


def _mark(node: Node) -> Mark:
    return (node.start_mark.line + 1, node.start_mark.column + 1)


def _distinct(found: Iterable[Problem]) -> list[Problem]:
    return list(dict.fromkeys(found))
