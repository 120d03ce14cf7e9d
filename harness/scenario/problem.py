"""One fault of a scenario, and where in its file it is."""

from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One fault of a scenario; the path is of keys and indices."""

    path: Path
    text: str
