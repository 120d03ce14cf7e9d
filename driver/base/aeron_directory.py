"""Where a driver lives, and where a client looks for one, unless told otherwise.

Both must come to the same answer, in whatever environment each of them runs. Source: spec 10.1 and
the C driver of Aeron 1.53, which trusts USER before the password file.
"""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


def default_directory(
    environment: Mapping[str, str] | None = None, shared_memory: Path = SHARED_MEMORY
) -> Path:
    """`aeron-<user>` in shared memory; where there is none, among the temporary files."""
    environment = os.environ if environment is None else environment
    temporary = Path(environment.get("TMPDIR") or "/tmp")
    parent = shared_memory if shared_memory.is_dir() else temporary
    return parent / f"aeron-{environment.get('USER') or _name_of_user()}"


def _name_of_user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name or "default"
    except KeyError:
        # A container may run under a number that has no name.
        return "default"
