"""A validation error in a scenario, with its location in the file."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and indices from the root of the file."""
NAME_SHOWN_MAX = 80
"""Maximum number of characters of an unknown name that a message shows."""


@dataclass(frozen=True)
class Problem:
    """A validation error: the path of the invalid value, and a message."""

    path: Path
    text: str


def unknown_name(what: str, found: object, known: Iterable[str], hint: str) -> str:
    """Return the error message for an unknown name: it suggests the nearest known names, or gives a
    hint.
    """
    name = str(found)
    if len(name) > NAME_SHOWN_MAX:
        found = name = f"{name[:NAME_SHOWN_MAX]}..."
    names = difflib.get_close_matches(name, list(known), n=3)
    nearest = f"did you mean {' or '.join(names)}?" if names else hint
    return f"expected {what}, found {found!r}: {nearest}"
