"""Completes a scenario file with the file that it extends.

    other.yaml   network, applications, impairments: delay 5 ms
    mine.yaml    extends: other.yaml, impairments: loss 2 %
    --> network, applications, impairments: delay 5 ms, loss 2 %

Tables are merged key by key. Lists whose items all have an `id` are merged item by item: an item
with the same id is merged, others are appended. All other values replace those of the extended
file. Each value keeps its place, so errors name the file in which it is written.

A scenario may come from another person. It extends only a regular file in its own folder or below
it, which no link leads to, or one of Windtunnel's scenarios.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from windtunnel.harness.artifact.regular_file import text_below
from windtunnel.harness.installation import SCENARIOS
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.yaml_document import (
    FILE_BYTES_MAX,
    Mark,
    ScenarioError,
    Where,
    YamlDocument,
    quoted,
    read_yaml,
)

KEY = "extends"
ID = "id"
OWN = ("name",)
"""Keys of the extended file that do not apply to the file that extends it."""
DEPTH_MAX = 8
"""Maximum number of files that extend each other."""
SUFFIX = ".yaml"
STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""A name of a file or folder, in the path of a file that a scenario names."""


def read_document(file: Path) -> YamlDocument:
    """Read a scenario file, completed with what it extends. Raises ScenarioError."""
    return completed(YamlDocument(read_yaml(file), str(file)), file.parent)


def completed(document: YamlDocument, folder: Path | None) -> YamlDocument:
    """Return a document, completed with what it extends. `folder` is that of its file, or None if
    it has none. Raises ScenarioError.
    """
    chain = [document]
    while isinstance(chain[-1].value, dict) and KEY in chain[-1].value:
        if len(chain) == DEPTH_MAX:
            text = f"expected at most {DEPTH_MAX} files that extend each other"
            raise ScenarioError(chain[-1].locate([Problem((KEY,), text)]))
        found, folder = _extended(chain[-1], folder)
        chain.append(found)
    merged = chain.pop()
    while chain:
        merged = _Merger().merged(merged, chain.pop())
    return merged


def _extended(document: YamlDocument, folder: Path | None) -> tuple[YamlDocument, Path]:
    """Read the file that a document extends. Returns its document and its folder."""
    try:
        file, text = _text(document.value.pop(KEY), folder)
    except ValueError as error:
        raise ScenarioError(document.locate([Problem((KEY,), str(error))])) from error
    found = YamlDocument(text, str(file))
    if not isinstance(found.value, dict):
        raise ScenarioError([f"{file}: expected a table, found {quoted(found.value)}"])
    return found, file.parent


def _text(name: object, folder: Path | None) -> tuple[Path, str]:
    """Return the file that a name stands for, and its text. Raises ValueError."""
    steps = name.split("/") if isinstance(name, str) else []
    if not steps or not all(STEP.fullmatch(step) for step in steps):
        text = "expected a file in the folder of this one or below it, such as other.yaml, or the "
        raise ValueError(f"{text}name of a scenario in `windtunnel list`, found {quoted(name)}")
    if not steps[-1].endswith(SUFFIX):
        folder, steps[-1] = SCENARIOS, f"{steps[-1]}{SUFFIX}"
    if folder is None:
        raise ValueError("expected the name of a scenario in `windtunnel list`, since this is text")
    path = PurePath(*steps)
    return folder / path, text_below(folder, path, FILE_BYTES_MAX)


@dataclass(frozen=True)
class _Node:
    """A value of a document."""

    document: YamlDocument
    path: Where
    value: Any

    def item(self, step: str | int) -> "_Node":
        return _Node(self.document, (*self.path, step), self.value[step])


class _Merger:
    """Merges two documents into one, with the place of each value."""

    def __init__(self) -> None:
        self._marks: dict[Where, Mark] = {}
        self._sources: dict[Where, str] = {}

    def merged(self, base: YamlDocument, own: YamlDocument) -> YamlDocument:
        for key in OWN:
            base.value.pop(key, None)
        value = self._merge(_Node(base, (), base.value), _Node(own, (), own.value), ())
        return YamlDocument.of(value, self._marks, self._sources, own.source)

    def _merge(self, base: _Node | None, own: _Node | None, out: Where) -> Any:
        """Return the merged value of two values, of which one may be absent. It is placed at the
        path `out`.
        """
        node = own or base
        assert node is not None
        self._marks[out] = node.document.mark(node.path)
        self._sources[out] = node.document.source_of(node.path)
        if base is None or own is None or not _are_alike(base.value, own.value):
            return self._taken(node, out)
        if isinstance(own.value, dict):
            return {
                key: self._merge(_item(base, key), _item(own, key), (*out, key))
                for key in {**base.value, **own.value}
            }
        at_base, at_own = _places(base.value), _places(own.value)
        return [
            self._merge(_item(base, at_base.get(name)), _item(own, at_own.get(name)), (*out, index))
            for index, name in enumerate({**at_base, **at_own})
        ]

    def _taken(self, node: _Node, out: Where) -> Any:
        """Return a value of one of the documents, and note where its parts are written."""
        if isinstance(node.value, dict):
            return {key: self._merge(None, node.item(key), (*out, key)) for key in node.value}
        if isinstance(node.value, list):
            return [
                self._merge(None, node.item(index), (*out, index))
                for index in range(len(node.value))
            ]
        return node.value


def _are_alike(base: Any, own: Any) -> bool:
    """Return whether two values are merged item by item."""
    both_tables = isinstance(base, dict) and isinstance(own, dict)
    return both_tables or (_has_ids(base) and _has_ids(own))


def _item(node: _Node, step: str | int | None) -> _Node | None:
    """Return an item of a table or list, or None if it has no such item."""
    if step is None or (isinstance(node.value, dict) and step not in node.value):
        return None
    return node.item(step)


def _places(items: list[dict[str, Any]]) -> dict[str, int]:
    """Return the places of tables in a list by their ids."""
    return {str(each[ID]): index for index, each in enumerate(items)}


def _has_ids(value: Any) -> bool:
    """Return whether a value is a list of tables that all have different ids."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return False
    ids = [str(each.get(ID)) for each in value if ID in each]
    return len(set(ids)) == len(value) > 0
