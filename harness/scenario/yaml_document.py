"""A YAML file as plain values with their lines and columns. Supports a small subset of YAML.

    text --PyYAML--> events --YamlDocument--> tables, lists, strings, numbers, booleans, nulls

Files come from other people, so whatever lets a short text become a large value, or a value of
another kind, is an error: anchors and aliases, tags, merge keys, dates, several documents. The file
size, the nesting depth and the number of values have limits. Nothing here is recursive.
"""

import math
import re
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from yaml.nodes import ScalarNode

from windtunnel.harness.scenario.schema.problem import Problem

FILE_BYTES_MAX = 4 << 20
"""Maximum size of a file in bytes: room for 50,000 ranges, the longest allowed list."""
VALUES_MAX = 250_000
"""Maximum number of tables, lists, strings, numbers, booleans and nulls in a file."""
DEPTH_MAX = 32
"""Maximum nesting depth of tables and lists. Scenarios need at most ten levels."""
ERRORS_MAX = 100
"""Maximum number of errors that are listed for one file."""
FOUND_LENGTH_MAX = 80
"""Maximum length of a value that an error message quotes."""
INTEGER_LENGTH_MAX = 80
"""Maximum length of a written integer. 64 bits with prefix and separators are shorter."""
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

_CORE = "tag:yaml.org,2002:"
_RESOLVED = tuple(_CORE + name for name in ("null", "bool", "int", "float"))
_STRING = f"{_CORE}str"
_OLD_NUMBER = re.compile(r"[-+]?(0[0-9_]+|[0-9_]+(:[0-9]+)+([.][0-9_]*)?)")
"""Numbers to base 8, such as 012, and to base 60, such as 12:30:45, in YAML 1.1. Editors read YAML
1.2, and users mean 12, or a text.
"""
_REMEDIES = {"mapping values are not allowed in this context": ": quote a text that contains ': '"}
"""What to do about problems that PyYAML reports without naming a remedy."""
Mark = tuple[int, int]
"""Line and column, counted from 1."""
Where = tuple[str | int, ...]
"""Keys and indices from the root of the file."""
FORMER_KEYS = {"weather": "impairments"}
"""Keys of a link by the names that they had in earlier versions, and still may have."""
_WORDS = ("on", "off", "yes", "no")
"""Keys that are booleans in YAML 1.1 but words to users."""


class WrittenInteger(int):
    """An integer that is written in another way than Python writes it, such as 0x10."""

    written: str


class WrittenFloat(float):
    """A number that is written in another way than Python writes it, such as 1.10."""

    written: str


class ScenarioError(ValueError):
    """Raised for an invalid file. `errors` has a message, with its location, for each problem."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(self.errors))


# With the parser of libyaml, which every package of PyYAML for Linux has, and which takes a seventh
# of the time. PyYAML has no types.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A PyYAML loader that only recognizes null, booleans and numbers. It reads dates, the special
    keys `<<` and `=`, and what only YAML 1.1 takes for numbers, as strings.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, Any]]]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in _RESOLVED]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_yaml(file: Path) -> str:
    """Return a YAML file's text. Raises ScenarioError if it cannot be read or is too long."""
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        text = content[:FILE_BYTES_MAX].decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise ScenarioError([f"{file}: expected UTF-8 text, found {found}"]) from error
    except OSError as error:
        raise ScenarioError([f"{file}: cannot be read: {error}"]) from error
    if len(content) > FILE_BYTES_MAX:
        raise ScenarioError([f"{file}: expected at most {FILE_BYTES_MAX} bytes, found more"])
    return text


def current_key(path: Where, key: str) -> str:
    """Return the name of a key at a path, which may be written by its former name."""
    is_of_link = path == ("network", "link") or path[:-1] == ("network", "links")
    return FORMER_KEYS.get(key, key) if is_of_link else key


def quoted(value: object) -> str:
    """Return a value as shown in error messages: control characters are escaped, and a long string
    is cut off.
    """
    if isinstance(value, dict | list | tuple):
        kind = "a table" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value)} item{'' if len(value) == 1 else 's'}"
    if not isinstance(value, str):
        return repr(value)
    if len(value) > FOUND_LENGTH_MAX:
        return f"{value[:FOUND_LENGTH_MAX]!r}... ({len(value)} characters)"
    return repr(value)


_Number = TypeVar("_Number", WrittenInteger, WrittenFloat)


class YamlDocument:
    """The values of a YAML document with their lines and columns."""

    def __init__(self, text: str, source: str) -> None:
        """Parse a YAML string.

        `source` is the file name for error messages. Raises ScenarioError.
        """
        self.source = source
        self.marks: dict[Where, Mark] = {(): (1, 1)}
        self.sources: dict[Where, str] = {}
        """The files of values that are written elsewhere, by their paths."""
        self.value: Any = {}
        self._value_count = 0
        self._last: Mark = (1, 1)
        try:
            self._loader = _Loader(text)
            self._build()
        except yaml.reader.ReaderError as error:
            # Its position is in characters or in bytes, but it is that of the first such character.
            position = text.find(chr(error.character))
            line = text.count("\n", 0, position) + 1
            column = position - text.rfind("\n", 0, position)
            found = f"U+{error.character:04X}"
            reason = f"invalid YAML: expected printable characters, found {found}"
            raise self._refused((line, column), reason) from error
        except ScenarioError:
            raise
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            # PyYAML converts escapes such as "\UFFFFFFFF" and versions without a check.
            raise self._refused(self._last, f"invalid YAML: {error}") from error

    @classmethod
    def of(
        cls, value: Any, marks: dict[Where, Mark], sources: dict[Where, str], source: str
    ) -> "YamlDocument":
        """Return a document with values that were read already, and the place of each."""
        found = cls("", source)
        found.value, found.marks, found.sources = value, marks, sources
        return found

    def copy(self) -> "YamlDocument":
        """Return a copy whose values can be changed."""
        return self.of(deepcopy(self.value), dict(self.marks), dict(self.sources), self.source)

    def mark(self, path: Where) -> Mark:
        """Return the line and column of the value at a path, or of the nearest enclosing table."""
        return self.marks[self._marked(path)]

    def source_of(self, path: Where) -> str:
        """Return the name of the file in which the value at a path is written."""
        return self.sources.get(self._marked(path), self.source)

    def _marked(self, path: Where) -> Where:
        while path not in self.marks:
            path = path[:-1]
        return path

    def locate(self, found: Iterable[Problem]) -> list[str]:
        """Return the problems as `file:line:column: key.path: text`, in file order.

        Lists the first ERRORS_MAX only.
        """
        distinct = dict.fromkeys(found)
        order = sorted(
            distinct,
            key=lambda each: (
                *(self.source_of(each.path), self.mark(each.path)),
                *(_key(each), each.text),
            ),
        )
        lines = []
        for each in order[:ERRORS_MAX]:
            line, column = self.mark(each.path)
            dotted = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in each.path)
            dotted = dotted.lstrip(".")
            prefix = f"{dotted}: " if dotted else ""
            source = self.source_of(each.path)
            lines.append(f"{source}:{line}:{column}: {prefix}{each.text}")
        if len(order) > ERRORS_MAX:
            lines.append(f"{self.source}: {len(order) - ERRORS_MAX} more errors")
        return lines

    def _build(self) -> None:
        """Build `value` from the parser's events, and store the line and column of each part."""
        open_values: list[tuple[Any, Where]] = []
        key: str | None = None
        document_count = 0
        while (event := self._next_event()) is not None:
            if isinstance(event, DocumentStartEvent):
                document_count += 1
                if document_count > 1:
                    raise self._refused(event, "expected one YAML document, found a second")
            elif isinstance(event, CollectionEndEvent):
                open_values.pop()
                key = None
            elif isinstance(event, NodeEvent):
                self._check(event, len(open_values))
                parent, path = open_values[-1] if open_values else (None, ())
                if isinstance(parent, dict) and key is None:
                    key = self._key(event, parent, path)
                    self.marks[(*path, key)] = _mark(event)
                    continue
                value = self._value(event)
                if isinstance(parent, dict) and key is not None:
                    parent[key] = value
                    path = (*path, key)
                elif isinstance(parent, list):
                    path = (*path, len(parent))
                    self.marks[path] = _mark(event)
                    parent.append(value)
                else:
                    self.value = {} if value is None and not open_values else value
                key = None
                if isinstance(value, dict | list):
                    open_values.append((value, path))

    def _next_event(self) -> Event | None:
        try:
            event: Event | None = self._loader.get_event()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            text = error.problem or "invalid YAML"
            raise self._refused(at, text + _REMEDIES.get(text, "")) from error
        if event is not None:
            self._last = _mark(event)
        return event

    def _check(self, event: NodeEvent, depth: int) -> None:
        """Raise ScenarioError for a node that a scenario must not contain."""
        if isinstance(event, AliasEvent):
            text = "alias *{} is not supported: write the value again"
            raise self._refused(event, text.format(_short(event.anchor)))
        if event.anchor is not None:
            text = "anchor &{} is not supported: write the value again where it is needed"
            raise self._refused(event, text.format(_short(event.anchor)))
        tag = getattr(event, "tag", None)
        if tag is not None:
            text = f"tag {quoted(tag)} is not supported: the value determines the type"
            raise self._refused(event, text)
        if isinstance(event, MappingStartEvent | SequenceStartEvent) and depth >= DEPTH_MAX:
            text = f"expected at most {DEPTH_MAX} levels of nested tables and lists, found more"
            raise self._refused(event, text)

    def _key(self, event: NodeEvent, table: dict[str, Any], path: Where) -> str:
        is_plain = isinstance(event, ScalarEvent) and self._tag(event) not in _RESOLVED
        if not isinstance(event, ScalarEvent) or not (is_plain or event.value in _WORDS):
            raise self._refused(event, "expected a string as a key")
        written = key = self._string(event)
        key = current_key(path, key)
        if key in table:
            text = "occurs twice" if key == written else f"is the former name of {quoted(key)}"
            raise self._refused(event, f"key {quoted(written)} {text}: remove one of them")
        return key

    def _value(self, event: NodeEvent) -> Any:
        self._value_count += 1
        if self._value_count > VALUES_MAX:
            raise self._refused(event, f"expected at most {VALUES_MAX} values, found more")
        if isinstance(event, MappingStartEvent):
            return {}
        if isinstance(event, SequenceStartEvent):
            return []
        assert isinstance(event, ScalarEvent)
        tag = self._tag(event)
        if tag not in _RESOLVED:
            return self._string(event)
        node = ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        if tag == _CORE + "null":
            return None
        if tag == _CORE + "bool":
            return self._loader.construct_yaml_bool(node)
        return self._integer(event, node) if tag == _CORE + "int" else self._float(event, node)

    def _integer(self, event: ScalarEvent, node: ScalarNode) -> int:
        value: int | None = None
        if len(event.value) <= INTEGER_LENGTH_MAX:
            try:
                value = self._loader.construct_yaml_int(node)
            except ValueError:
                value = None  # Such as 0x_.
        if value is None or not INT64_MIN <= value <= INT64_MAX:
            text = f"expected a 64-bit integer, found {_short(event.value)}"
            raise self._refused(event, text)
        return value if str(value) == event.value else _as_written(WrittenInteger(value), event)

    def _float(self, event: ScalarEvent, node: ScalarNode) -> float:
        value: float = self._loader.construct_yaml_float(node)
        if not math.isfinite(value):
            raise self._refused(event, f"expected a finite number, found {_short(event.value)}")
        return value if str(value) == event.value else _as_written(WrittenFloat(value), event)

    def _tag(self, event: ScalarEvent) -> str:
        if _OLD_NUMBER.fullmatch(event.value):
            return _STRING
        tag: str = self._loader.resolve(ScalarNode, event.value, event.implicit)
        return tag

    def _string(self, event: ScalarEvent) -> str:
        value: str = event.value
        if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
            raise self._refused(event, "expected Unicode text, found an unpaired surrogate")
        return value

    def _refused(self, at: Event | Mark, text: str) -> ScenarioError:
        line, column = at if isinstance(at, tuple) else _mark(at)
        return ScenarioError([f"{self.source}:{line}:{column}: {text}"])


def _as_written(number: _Number, event: ScalarEvent) -> _Number:
    number.written = event.value
    return number


def _short(text: str) -> str:
    return text if len(text) <= FOUND_LENGTH_MAX else f"{text[:FOUND_LENGTH_MAX]}..."


def _key(each: Problem) -> tuple[tuple[int, str], ...]:
    """Return the sort key of a problem's path, which consists of keys and indices."""
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in each.path)


def _mark(event: Event) -> Mark:
    return (event.start_mark.line + 1, event.start_mark.column + 1)
