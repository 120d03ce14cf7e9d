"""One thing that is wrong with a scenario, and where in the file it is written."""

from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and indices from the top of the file."""


@dataclass(frozen=True)
class Problem:
    """One fault of a scenario, and where it is."""

    path: Path
    text: str
