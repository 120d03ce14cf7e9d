"""The command that process 1 inside User Mode Linux must run, and the result of the command.

<folder>/request.json     request: the command, its environment, the modules to load
<folder>/exit.json      result:  its exit code, or the error
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

REQUEST_FILE = "request.json"
EXIT_FILE = "exit.json"


@dataclass(frozen=True)
class BootRequest:
    """A command that process 1 inside User Mode Linux must run."""

    argv: list[str]
    cwd: str
    environment: dict[str, str]
    modules_folder: str
    modules: list[str]

    def write(self, folder: Path) -> None:
        (folder / REQUEST_FILE).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> "BootRequest":
        return cls(**json.loads((folder / REQUEST_FILE).read_text()))


@dataclass(frozen=True)
class Exit:
    """The result of a boot request: an exit code or an error message."""

    code: int | None
    problem: str = ""

    def write(self, folder: Path) -> None:
        (folder / EXIT_FILE).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> "Exit | None":
        """Read the result. Returns None if the kernel ended before writing it."""
        try:
            return cls(**json.loads((folder / EXIT_FILE).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
