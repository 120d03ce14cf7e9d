"""The default directory of a driver and its clients.

Driver and clients must compute the same path, even in different environments. Source: spec 10.1 and
the C driver of Aeron 1.53, which prefers USER to the password file.
"""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


def default_directory(
    environment: Mapping[str, str] | None = None, shared_memory: Path = SHARED_MEMORY
) -> Path:
    """Return the path of `aeron-<user>` in /dev/shm, or in the temporary directory if there is no
    /dev/shm.
    """
    environment = os.environ if environment is None else environment
    temporary = Path(environment.get("TMPDIR") or "/tmp")
    parent = shared_memory if shared_memory.is_dir() else temporary
    return parent / f"aeron-{environment.get('USER') or _name_of_user()}"


def _name_of_user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name or "default"
    except KeyError:
        # In a container the uid may have no entry in the password file.
        return "default"
