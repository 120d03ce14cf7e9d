"""An application that a program requests from a live lab, validated like one of a scenario file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.harness.orchestrate.applications.start import Surroundings
from windtunnel.harness.orchestrate.fidelity import NETNS
from windtunnel.harness.orchestrate.live.live_scenario import OptionError, require_application
from windtunnel.harness.scenario.applications.application_case import (
    ApplicationCase,
    application_case,
)
from windtunnel.harness.scenario.resolved.case import Case

KEYS = ("on", "command", "image", "limits", "env", "driver", "ready", "stop", "expect")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
NAME_LENGTH_MAX = 24


@dataclass(frozen=True)
class ApplicationRequest:
    """An application to start."""

    case: ApplicationCase
    surroundings: Surroundings


def application_request(
    document: Mapping[str, Any], case: Case, free_id: Callable[[str], str], fidelity: str = NETNS
) -> ApplicationRequest:
    """Return the application that a request describes. Raises OptionError if it is not valid."""
    table = {key: document[key] for key in KEYS if document.get(key) is not None}
    named, words = document.get("name"), document.get("command") or [document.get("image")]
    table["id"] = named if named else free_id(_name_of(words))
    hosts = [each.name for each in case.hosts]
    application = require_application(hosts, table, fidelity)
    addresses = {each.name: each.address for each in case.hosts}
    found = application_case(application, addresses)
    found = found.model_copy(update={"ends_at_any_time": not found.ends_by_itself})
    folder = Path(str(document["folder"]))
    if not folder.is_dir():
        raise OptionError(f"the working folder {folder} does not exist")
    variables = document.get("variables") or {}
    if not all(isinstance(each, str) for pair in variables.items() for each in pair):
        raise OptionError("variables: expected names and texts")
    return ApplicationRequest(found, Surroundings(folder, variables))


def _name_of(command: object) -> str:
    """Return a name for an application: that of its program, or of the script that it runs."""
    words = [str(each) for each in command] if isinstance(command, (list, tuple)) else []
    scripts = [each for each in words[1:] if each.endswith((".py", ".jar", ".sh"))]
    word = Path((scripts or words or ["application"])[0]).stem
    name = _NOT_IN_NAMES.sub("-", word.lower()).strip("-")[:NAME_LENGTH_MAX].strip("-")
    return name if name and name[0].isalpha() else f"application-{name}".rstrip("-")
