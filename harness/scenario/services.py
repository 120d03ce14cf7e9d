"""Takes applications from services of a compose file of the user's own.

    applications: [{id: feed, on: a, compose: {file: docker-compose.yaml, service: feed}}]

    services:                         applications:
      feed:                             - id: feed
        build: ./feed          -->        on: a
        environment: {RATE: 5}            build: feed
        ports: ["80:80"]                  env: {RATE: 5}

What the scenario says itself has precedence. Keys that would give an application rights, or access
to this machine, are errors, and so are those that are not known; a few have no effect in a lab.
Values cannot refer to variables of the shell.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any

from windtunnel.harness.artifact.regular_file import text_below
from windtunnel.harness.scenario.applications.application import USER_PATTERN
from windtunnel.harness.scenario.extends import STEP
from windtunnel.harness.scenario.schema.problem import Path as At
from windtunnel.harness.scenario.schema.problem import Problem, unknown_name
from windtunnel.harness.scenario.yaml_document import (
    FILE_BYTES_MAX,
    ScenarioError,
    YamlDocument,
    quoted,
)

KEY = "compose"
FORBIDDEN = frozenset({
    "cap_add", "cgroup", "cgroup_parent", "configs", "credential_spec", "device_cgroup_rules",
    "devices", "gpus", "group_add", "ipc", "network_mode", "pid", "privileged", "runtime",
    "secrets", "security_opt", "sysctls", "tmpfs", "ulimits", "use_api_socket", "userns_mode",
    "uts", "volumes", "volumes_from",
})  # fmt: skip
"""Keys that give a container rights, or access to this machine or to other containers."""
INEFFECTIVE = frozenset({
    "attach", "cap_drop", "container_name", "depends_on", "expose", "healthcheck", "hostname",
    "init", "labels", "logging", "networks", "ports", "profiles", "pull_policy", "restart",
    "stdin_open", "tty",
})  # fmt: skip
"""Keys without an effect: an application has the network of its host, and no other container waits
for it.
"""
ELSEWHERE = {
    "cpus": "write `limits: {cpus: ...}` of the application",
    "deploy": "write `limits` of the application",
    "entrypoint": "write it in the Dockerfile",
    "env_file": "write `environment`, or `env` of the application",
    "extends": "name a service that is complete",
    "mem_limit": "write `limits: {memory: ...}` of the application",
    "pids_limit": "write `limits: {processes: ...}` of the application",
    "stop_grace_period": "write `stop: {within: ...}` of the application",
    "stop_signal": "write `stop: {signal: ...}` of the application",
}


def with_services(document: YamlDocument, folder: Path) -> bool:
    """Complete the applications of a scenario's document with the services that they name. `folder`
    is that of its file. Returns whether there are any. Raises ScenarioError.
    """
    applications = document.value.get("applications") if isinstance(document.value, dict) else None
    found = False
    for index, each in enumerate(applications if isinstance(applications, list) else []):
        if isinstance(each, dict) and KEY in each:
            found = True
            try:
                taken = _service(each[KEY], folder)
            except ScenarioError:
                raise
            except ValueError as error:
                at: At = ("applications", index, KEY)
                raise ScenarioError(document.locate([Problem(at, str(error))])) from error
            _complete(each, taken)
    return found


def _complete(application: dict[str, Any], service: dict[str, Any]) -> None:
    """Add what an application does not say itself."""
    del application[KEY]
    if "build" in application or "image" in application:
        service = {key: each for key, each in service.items() if key not in ("build", "image")}
    own = application.get("env", {})
    if isinstance(own, dict) and "env" in service:
        application["env"] = {**service["env"], **own}
    for key, value in service.items():
        application.setdefault(key, value)


def _service(named: object, folder: Path) -> dict[str, Any]:
    """Return the keys of an application that a service gives it. Raises ValueError, or
    ScenarioError for an error in the compose file.
    """
    if not isinstance(named, dict) or {*named} != {"file", "service"}:
        raise ValueError("expected {file: docker-compose.yaml, service: NAME}")
    name, steps = named["file"], str(named["file"]).split("/")
    if not isinstance(name, str) or not all(STEP.fullmatch(step) for step in steps):
        text = "expected a file in the folder of this one or below it, such as docker-compose.yaml"
        raise ValueError(f"{text}, found {quoted(name)}")
    path = PurePath(*steps)
    document = YamlDocument(text_below(folder, path, FILE_BYTES_MAX), str(folder / path))
    services = document.value.get("services") if isinstance(document.value, dict) else None
    if not isinstance(services, dict):
        raise ValueError(f"{path}: expected `services`")
    service, at = services.get(str(named["service"])), ("services", str(named["service"]))
    if not isinstance(service, dict):
        known = ", ".join(map(str, services))
        text = unknown_name("a service", named["service"], map(str, services), f"they are {known}")
        raise ValueError(f"{path}: {text}")
    problems: list[Problem] = []
    found: dict[str, Any] = {}
    for key, value in service.items():
        try:
            found |= _taken(str(key), value, path.parent)
        except ValueError as error:
            problems.append(Problem((*at, key), str(error)))
    if problems:
        raise ScenarioError(document.locate(problems))
    if "build" in found:
        found.pop("image", None)
    return found


def _taken(key: str, value: object, folder: PurePath) -> dict[str, Any]:
    """Return what a key of a service gives an application. Raises ValueError."""
    if key in _TAKEN:
        return _TAKEN[key](value, folder)
    if key in FORBIDDEN:
        if value in (None, False, [], {}):
            return {}
        text = "an application has no more rights than others, and no access to this machine"
        raise ValueError(f"{text}: remove this key")
    if key in INEFFECTIVE or key.startswith("x-"):
        return {}
    hint = ELSEWHERE.get(key, "remove it, or describe the application in the scenario")
    raise ValueError(f"this key of a service is not supported: {hint}")


def _image(value: object, _: PurePath) -> dict[str, Any]:
    return {"image": _text(value)}


def _user(value: object, _: PurePath) -> dict[str, Any]:
    user = _text(value)
    if not re.fullmatch(USER_PATTERN, user):
        raise ValueError(f"expected numbers, such as 1000 or 1000:1000, found {quoted(user)}")
    return {"user": user}


def _working_dir(value: object, _: PurePath) -> dict[str, Any]:
    folder = _text(value)
    if not folder.startswith("/"):
        raise ValueError(f"expected a path that begins with /, found {quoted(folder)}")
    return {"working_dir": folder}


def _command(value: object, _: PurePath) -> dict[str, Any]:
    if value is None:
        return {}
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        text = f"the command cannot be separated into words ({error}), found {quoted(value)}"
        raise ValueError(f"{text}: write a list of words") from error
    if not isinstance(words, list):
        raise ValueError(f"expected a list of words, found {quoted(value)}")
    return {"command": [_text(each) for each in words]}


def _environment(value: object, _: PurePath) -> dict[str, Any]:
    if isinstance(value, list):
        for each in value:
            if not isinstance(each, str):
                raise ValueError(f"expected NAME=VALUE, found {quoted(each)}")
        pairs: Iterator[tuple[str, str, str]] = (each.partition("=") for each in value)
        value = {name: text if mark else None for name, mark, text in pairs}
    if not isinstance(value, dict):
        raise ValueError(f"expected a table, or a list of NAME=VALUE, found {quoted(value)}")
    absent = [str(name) for name, each in value.items() if each is None]
    if absent:
        raise ValueError(f"variable {absent[0]} has no value: write one")
    return {"env": {str(name): _text(each) for name, each in value.items()}}


def _build(value: object, folder: PurePath) -> dict[str, Any]:
    table = value if isinstance(value, dict) else {"context": value}
    for key, each in table.items():
        if key != "context" and (key, each) != ("dockerfile", "Dockerfile"):
            text = f"{key}: only a folder with a file `Dockerfile` is built: "
            raise ValueError(f"{text}write the rest in that file")
    context = _text(table.get("context", "."))
    path = folder / context
    if path.is_absolute() or ".." in path.parts:
        text = f"expected a folder below that of the compose file, found {quoted(context)}"
        raise ValueError(text)
    return {"build": str(path)}


_TAKEN: dict[str, Callable[[object, PurePath], dict[str, Any]]] = {
    "image": _image,
    "build": _build,
    "command": _command,
    "environment": _environment,
    "user": _user,
    "working_dir": _working_dir,
}


def _text(value: object) -> str:
    """Return a value as compose reads it, which has `$$` for `$`. Raises ValueError."""
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"expected a text, found {quoted(value)}")
    text = str(value)
    if "$" in text.replace("$$", ""):
        text = f"variables of the shell are not filled in, found {quoted(text)}: write the value"
        raise ValueError(f"{text}, and `$$` for a dollar sign")
    return text.replace("$$", "$")
