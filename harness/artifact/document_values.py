"""Checks the values of a JSON document against the dataclass that represents the document.

    {"name": "traffic", "started_ns": 1, ...} --parse(Phase, ...)--> Phase(name="traffic", ...)

Documents come from other people's run folders, so a value with a wrong type must be rejected when
the file is read. Supported are dataclasses, bool, int, float, str, None, Any, Literal, unions,
lists and dictionaries with strings as keys. A missing field takes its default, and an unknown field
is an error.
"""

import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

FOUND_LENGTH_MAX = 80
"""Maximum length of a value that an error message quotes."""
_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    type(None): "null",
    list: "a list",
    dict: "an object",
}
_PLAIN = (bool, int, float, str, type(None))

_Parsed = TypeVar("_Parsed")


class ValueTypeError(ValueError):
    """Raised for a value of the wrong type. The message gives its path, the expected type and the
    value.
    """


def parse(kind: type[_Parsed], value: object, place: str = "") -> _Parsed:
    """Convert a value of a JSON document to type `kind`. `place` is the value's path in the
    document, such as `phases[2].name`.

    Raises ValueTypeError if the value has another type.
    """
    return cast(_Parsed, _parse(kind, value, place))


def described(value: object) -> str:
    """Format a value for an error message. A long value is cut off."""
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value)} item{'' if len(value) == 1 else 's'}"
    if isinstance(value, str) and len(value) > FOUND_LENGTH_MAX:
        return f"{value[:FOUND_LENGTH_MAX]!r}... ({len(value)} characters)"
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else repr(value)
    )


def refuse(place: str, expected: str, value: object) -> ValueTypeError:
    """Return the exception to raise for a value that is not as expected."""
    return ValueTypeError(
        f"{place + ': ' if place else ''}expected {expected}, found {described(value)}"
    )


def _parse(kind: Any, value: object, place: str) -> Any:
    if kind is Any:
        return value
    if kind in _PLAIN:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise refuse(place, _NAMES[kind], value)
    if is_dataclass(kind):
        return _object(kind, value, place)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return _list(arguments[0], value, place)
    if origin is dict:
        assert arguments[0] is str
        return _dictionary(arguments[1], value, place)
    if origin is Literal:
        if type(value) is str and value in arguments:
            return value
        raise refuse(place, " or ".join(map(repr, arguments)), value)
    assert origin in (types.UnionType, Union), kind
    if type(value) in arguments:
        return value
    others = [each for each in arguments if each is not type(None)]
    if len(others) > 1:
        raise refuse(place, " or ".join(_NAMES[each] for each in others), value)
    return _parse(others[0], value, place)


def _list(kind: Any, value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise refuse(place, "a list", value)
    if kind in _PLAIN and all(type(each) is kind for each in value):
        # Records have very many numbers: no place is composed for each.
        return list(value)
    return [_parse(kind, each, f"{place}[{index}]") for index, each in enumerate(value)]


def _dictionary(kind: Any, value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse(place, "an object", value)
    return {key: _parse(kind, each, _inside(place, key)) for key, each in value.items()}


def _object(kind: Any, value: object, place: str) -> Any:
    if not isinstance(value, dict):
        raise refuse(place, "an object", value)
    kinds, required = _fields(kind)
    missing = [name for name in required if name not in value]
    if missing:
        raise ValueTypeError(f"{_inside(place, missing[0])}: expected a value, found none")
    unknown = [key for key in value if key not in kinds]
    if unknown:
        found = described(unknown[0])
        raise ValueTypeError(f"{place + ': ' if place else ''}unknown key {found}")
    values = {key: _parse(kinds[key], each, _inside(place, key)) for key, each in value.items()}
    try:
        return kind(**values)
    except ValueTypeError as error:
        raise ValueTypeError(f"{place}.{error}" if place else str(error)) from error


@cache
def _fields(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the types of a dataclass's fields, and the names of the fields without a default."""
    hints = get_type_hints(kind)
    own = [each for each in fields(kind) if each.init]
    required = [
        each.name for each in own if each.default is MISSING and each.default_factory is MISSING
    ]
    return {each.name: hints[each.name] for each in own}, tuple(required)


def _inside(place: str, key: str) -> str:
    name = key if len(key) <= FOUND_LENGTH_MAX and key.isprintable() else described(key)
    return f"{place}.{name}" if place else name
