"""The drivers to which a check applies: names with optional version ranges.

    ours    aeron-c    aeron-c>=1.50    aeron-java>=1.50,<1.53

For other drivers the check is still evaluated, but a violation is a difference and not a failure.
"""

import re
from collections.abc import Iterable

_NUMBERS = r"[0-9]{1,9}(?:\.[0-9]{1,9})*"
_ENTRY = re.compile(rf"([a-z][a-z0-9-]*)((?:(?:>=|<){_NUMBERS},?)*)", re.ASCII)
PATTERN = rf"^(?!.*,$)[a-z][a-z0-9-]*((>=|<){_NUMBERS},?)*$"
"""The regular expression for a driver with versions, for the JSON Schema."""
_BOUND = re.compile(rf"(>=|<)({_NUMBERS})", re.ASCII)
_VERSION = re.compile(_NUMBERS, re.ASCII)
ENTRIES_MAX = 64
ENTRY_LENGTH_MAX = 200

KEY = "applies"
"""The check argument that lists the drivers."""


def check_applies(entries: object) -> None:
    """Raise ValueError unless `entries` is a list of valid driver names and version ranges."""
    if not isinstance(entries, list) or not 1 <= len(entries) <= ENTRIES_MAX:
        raise ValueError(
            f"expected a list of 1 to {ENTRIES_MAX} drivers such as [ours, aeron-c>=1.50], "
            f"found {_shown(entries)}"
        )
    for entry in entries:
        if not _is_entry(entry):
            text = f"expected a driver such as ours or aeron-c>=1.50, found {_shown(entry)}"
            raise ValueError(text)


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, str)
        and len(entry) <= ENTRY_LENGTH_MAX
        and _ENTRY.fullmatch(entry) is not None
        and not entry.endswith(",")
    )


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return f"a {'table' if isinstance(value, dict) else 'list'} of {len(value)}"
    return repr(value[:80] if isinstance(value, str) else value)


def applies_to(entries: Iterable[str], name: str, version: str) -> bool | None:
    """Return whether a driver matches any entry, or None if that depends on its unknown version."""
    known = _VERSION.match(version)
    unsure = False
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None or match[1] != name:
            continue
        bounds = _BOUND.findall(match[2])
        if not bounds:
            return True
        if known is None:
            unsure = True
        elif all(_within(known[0], sign, bound) for sign, bound in bounds):
            return True
    return None if unsure else False


def _within(version: str, sign: str, bound: str) -> bool:
    found, limit = _numbers(version), _numbers(bound)
    length = max(len(found), len(limit))
    found, limit = (each + (0,) * (length - len(each)) for each in (found, limit))
    return found >= limit if sign == ">=" else found < limit


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split("."))
