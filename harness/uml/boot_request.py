"""What the kernel's first process is told to do, and what it tells at its end.

<folder>/order.json     before: the command, its surroundings, the modules to load
<folder>/exit.json      after:  its exit code, or what went wrong instead
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

ORDER_FILE = "order.json"
EXIT_FILE = "exit.json"


@dataclass(frozen=True)
class BootRequest:
    """One command for the inside."""

    argv: list[str]
    cwd: str
    environment: dict[str, str]
    modules_folder: str
    modules: list[str]

    def write(self, folder: Path) -> None:
        (folder / ORDER_FILE).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> "BootRequest":
        return cls(**json.loads((folder / ORDER_FILE).read_text()))


@dataclass(frozen=True)
class Exit:
    """How it ended: an exit code, or a text about why there is none."""

    code: int | None
    problem: str = ""

    def write(self, folder: Path) -> None:
        (folder / EXIT_FILE).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> "Exit | None":
        """Return what was told, or None when the kernel ended before."""
        try:
            return cls(**json.loads((folder / EXIT_FILE).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
