"""For which subjects a check is a promise: drivers by name, with a range of versions if need be.

    ours    aeron-c    aeron-c>=1.50    aeron-java>=1.50,<1.53

A check outside its subjects is still made; what it finds is a difference, and no failure.
"""

import re
from collections.abc import Iterable

_ENTRY = re.compile(r"([a-z][a-z0-9-]*)((?:(?:>=|<)\d+(?:\.\d+)*,?)*)")
_BOUND = re.compile(r"(>=|<)(\d+(?:\.\d+)*)")
_VERSION = re.compile(r"\d+(?:\.\d+)*")

KEY = "applies"
"""The argument of a check that names its subjects."""


def check_applies(entries: object) -> None:
    """Raise ValueError unless these are a list of subjects."""
    if not isinstance(entries, list) or not entries:
        raise ValueError(
            f"expected a list of subjects such as [ours, aeron-c>=1.50], found {entries!r}"
        )
    for entry in entries:
        if not isinstance(entry, str) or not _ENTRY.fullmatch(entry) or entry.endswith(","):
            raise ValueError(f"expected a subject such as ours or aeron-c>=1.50, found {entry!r}")


def applies_to(entries: Iterable[str], name: str, version: str) -> bool | None:
    """Whether a subject is among them; None when that hangs on a version which is not known."""
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
