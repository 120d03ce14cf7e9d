"""Texts of the errors that pydantic finds in a scenario: what was expected, and what was found.

{type: int_type, input: 'x'}  -->  expected an integer, found 'x'
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from windtunnel.harness.scenario.schema.table import Table
from windtunnel.harness.scenario.yaml_document import quoted

_KEYS_MAX = 3
"""Maximum number of keys that the text about a table names."""
_TEXTS = {
    "tuple_type": "expected a list, such as [a, b]",
    "list_type": "expected a list, such as [a, b]",
    "dict_type": "expected a table, such as {{key: value}}",
    "string_type": "expected a text",
    "int_type": "expected an integer",
    "int_from_float": "expected an integer",
    "int_parsing": "expected an integer",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected at most {le}",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "too_short": "expected at least {min_length} items",
    "too_long": "expected at most {max_length} items",
    "string_too_short": "expected at least {min_length} characters",
    "string_too_long": "expected at most {max_length} characters",
    "literal_error": "expected {expected}",
}
"""Texts by pydantic's name of the error. The values in braces are pydantic's."""
_PATTERNS = {
    r"^[a-z0-9-]+(/[a-z0-9-]+)*$": "expected lower-case letters, digits and -, in parts separated "
    "by /, such as loss/mine",
    r"^[a-z0-9][a-z0-9-]*$": "expected lower-case letters, digits and -, such as feed-1",
}
"""Texts about names, by the pattern that they have."""


def error_text(error: Any, model: type[Table] = Table) -> str:
    """Return the text of one of the errors of a pydantic ValidationError of a model."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        *place, key = error["loc"]
        near = difflib.get_close_matches(str(key), _keys_at(place, model), n=3)
        return f"unknown key: did you mean {' or '.join(near)}?" if near else "unknown key"
    if kind == "missing":
        return "this key is missing"
    if kind == "value_error":
        return str(context["error"])
    return f"{_expected(kind, context, error['msg'])}, found {quoted(error['input'])}"


def _expected(kind: str, context: dict[str, Any], message: str) -> str:
    if kind == "model_type":
        keys = ", ".join(f"`{each}`" for each in _keys(context["class_name"]))
        return f"expected a table with keys such as {keys}" if keys else "expected a table"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return _PATTERNS.get(pattern, f"expected a text that matches {pattern}")
    if kind in _TEXTS:
        return _TEXTS[kind].format(**context)
    return f"{message[:1].lower()}{message[1:]}"


def _keys(class_name: str) -> list[str]:
    """Return the first keys of a table by the name of its class, required ones first."""
    found = next((each for each in _tables(Table) if each.__name__ == class_name), Table)
    fields = sorted(found.model_fields.items(), key=lambda each: not each[1].is_required())
    return [field.alias or name for name, field in fields[:_KEYS_MAX]]


def _keys_at(place: Sequence[str | int], model: type[Table]) -> list[str]:
    """Return the keys of the tables that may be at a place in a model. Steps that name no key, such
    as indices and tags, do not change the table.
    """
    tables = [model]
    for step in place:
        inner = [
            each
            for table in tables
            for name, field in table.model_fields.items()
            if (field.alias or name) == step
            for each in _tables_in(field.annotation)
        ]
        tables = inner or tables
    fields = [each for table in tables for each in table.model_fields.items()]
    return list(dict.fromkeys(field.alias or name for name, field in fields))


def _tables_in(annotation: Any) -> Iterator[type[Table]]:
    """Yield the tables in a type, such as `tuple[Fault, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        yield annotation
    for each in get_args(annotation):
        yield from _tables_in(each)


def _tables(root: type[Table]) -> list[type[Table]]:
    return [root, *(found for each in root.__subclasses__() for found in _tables(each))]
