"""Starts the process that keeps a lab, and waits until the lab is ready."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from windtunnel.harness.lab.child_process import detached, last_lines
from windtunnel.harness.lab.control.control_socket import is_up, socket_path
from windtunnel.harness.lab.errors import LabError

KEEPER = "windtunnel.harness.lab.control.keeper"


def bring_up(
    name: str, options: dict[str, Any], on_progress: Callable[[str], None]
) -> dict[str, Any]:
    """Bring up a lab that stays when this process ends, and return what is known about it: run
    folder, addresses and driver directories. Raises LabError if that is not possible.
    """
    if is_up(name):
        raise LabError(f"lab {name!r} is up already: `windtunnel lab down` ends it")
    log = socket_path(name).with_suffix(".log")
    with detached(KEEPER, name, json.dumps(options), log) as lines:
        for line in lines:
            document = json.loads(line)
            if "progress" in document:
                on_progress(str(document["progress"]))
            elif "ready" in document:
                return dict(document["ready"])
            else:
                raise LabError(str(document.get("failed")))
    text = last_lines(log.read_text(errors="replace"))
    raise LabError(f"the process that keeps the lab has ended: {text}")
