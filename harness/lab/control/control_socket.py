"""Where the process that keeps a lab listens, and how other programs of the user reach it.

    $XDG_RUNTIME_DIR or /tmp / windtunnel-<user id> / <name>.sock      only this user has access

One request and one answer per connection, each a line of JSON.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

from windtunnel.harness.lab.errors import LabError

LINE_BYTES_MAX = 4 << 20
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class NoLab(LabError):
    """Raised if no lab of the name is up."""


def socket_path(name: str, folder: Path | None = None) -> Path:
    """Return the path of the socket of a lab. Creates its folder, which no other user can enter.

    Raises LabError if the folder belongs to another user.
    """
    if not NAME.fullmatch(name):
        text = "expected a name of lower-case letters, digits and hyphens"
        raise LabError(f"{text}, found {name[:80]!r}")
    where = folder or Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    own = where / f"windtunnel-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    found = own.lstat()
    is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_private or stat.S_IMODE(found.st_mode) & 0o077:
        text = f"{own}: expected a folder that only this user can enter"
        raise LabError(f"{text}: remove it, or set XDG_RUNTIME_DIR")
    return own / f"{name}.sock"


def ask(name: str, request: dict[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """Make a request to the process that keeps a lab, and return the answer.

    Raises NoLab if there is no lab of this name, and LabError if the request is refused.
    """
    path = socket_path(name, folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
        except OSError as error:
            text = "" if name == "lab" else f" {name!r}"
            raise NoLab(f"no lab{text} is up: start one with `windtunnel lab up`") from error
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answers:
            line = answers.readline(LINE_BYTES_MAX)
        answer = json.loads(line or b'{"error": "the lab has ended"}')
    if "ok" in answer:
        return dict(answer["ok"])
    raise LabError(str(answer.get("error")))


def is_up(name: str, folder: Path | None = None) -> bool:
    """Return whether a process keeps a lab of this name."""
    try:
        ask(name, {"do": "status"}, folder)
    except NoLab:
        return False
    except LabError:
        pass
    return True
