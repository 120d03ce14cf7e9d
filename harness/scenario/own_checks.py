"""The user's own checks, which a scenario names: Python files with decorated functions.

    checks: [checks.py, lib/feed.py]     in the folder of the scenario, or below it

A scenario may come from another person. A file is a regular file that no link leads to, and it is
executed only if the user has allowed the commands of the scenario.
"""

from pathlib import Path, PurePath
from typing import Annotated

from pydantic import Field

from windtunnel.harness.artifact.regular_file import text_below

FILES_MAX = 16
SOURCE_BYTES_MAX = 1 << 20
NAME_LENGTH_MAX = 200
_STEP = "[A-Za-z0-9_][A-Za-z0-9._-]*"

OwnCheckFile = Annotated[
    str, Field(pattern=rf"^({_STEP}/)*{_STEP}[.]py$", max_length=NAME_LENGTH_MAX)
]
"""The path of a file with checks, relative to the folder of the scenario."""


def read_source(folder: Path, name: str) -> str:
    """Return the text of a file with checks. `folder` is that of the scenario.

    Raises ValueError if it is not a regular file in this folder or below it, or cannot be read.
    """
    return text_below(folder, PurePath(name), SOURCE_BYTES_MAX)
