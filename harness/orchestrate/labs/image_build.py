"""Builds the image of an application from a folder of the user with a Dockerfile.

    folder --its files, as `docker build` sends them--> engine --output--> log, of limited length
                                                        image windtunnel-application:<folder>

The engine keeps the image and its layers, so a folder that has not changed is built in no time. The
commands of a Dockerfile are the user's, and run with the rights that the engine gives to builds.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path, PurePath
from typing import Any

import docker
from docker.errors import DockerException, StreamParseError
from docker.utils.build import exclude_paths
from urllib3.exceptions import HTTPError

from windtunnel.harness.artifact.regular_file import UnsafeFileError, folder_below, read_text
from windtunnel.harness.orchestrate.lab import NotBuilt
from windtunnel.harness.scenario.schema.units import format_bytes

REPOSITORY = "windtunnel-application"
CONTEXT_BYTES_MAX = 1 << 30
"""Maximum length of all files of a folder that are sent to the engine."""
LOG_BYTES_MAX = 4 << 20
IGNORED, IGNORED_BYTES_MAX = ".dockerignore", 1 << 20
BUILD_TIMEOUT_S = 1800.0
SILENCE_TIMEOUT_S = 900
"""Longest time for which a build may print nothing."""


def build_image(client: docker.DockerClient, root: Path, folder: str, log: Path) -> str:
    """Build the image of a folder below `root`, and append the output to a log. Returns the image's
    name.

    Raises NotBuilt if it cannot be built, and DockerException or OSError if the engine does not
    respond.
    """
    name = f"{REPOSITORY}:{hashlib.sha256(str(root.resolve() / folder).encode()).hexdigest()[:12]}"
    try:
        with folder_below(root, PurePath(folder)) as context:
            _require_short(context)
            _build(client, context, name, log)
    except OSError as error:
        raise NotBuilt(f"{root / folder}: {error.strerror or error}") from error
    return name


def _require_short(context: Path) -> None:
    """Raise NotBuilt if more would be sent to the engine than a Dockerfile needs."""
    length = 0
    for each in _sent(context):
        length += (context / each).lstat().st_size
        if length > CONTEXT_BYTES_MAX:
            text = f"its files exceed {format_bytes(CONTEXT_BYTES_MAX)}: leave some out in a "
            raise NotBuilt(f"{text}{IGNORED} file, or choose a folder of its own")


def _sent(context: Path) -> Collection[str]:
    """Return the files of a folder that are sent to the engine. Raises NotBuilt if its ignore file
    cannot be used.
    """
    where = f"{IGNORED}: "
    try:
        found = (context / IGNORED).exists()
        lines = read_text(context / IGNORED, IGNORED_BYTES_MAX).splitlines() if found else []
        patterns = [each.strip() for each in lines]
        chosen: Collection[str] = exclude_paths(
            str(context), [each for each in patterns if each and not each.startswith("#")]
        )
    except UnsafeFileError as error:
        raise NotBuilt(f"{where}{error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NotBuilt(f"{where}not UTF-8: {error}") from error
    except re.error as error:
        raise NotBuilt(f"{where}a pattern cannot be read: {error}") from error
    return chosen


def _build(client: docker.DockerClient, context: Path, name: str, log: Path) -> None:
    deadline_s = time.monotonic() + BUILD_TIMEOUT_S
    client.api.timeout = SILENCE_TIMEOUT_S
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        room, last = LOG_BYTES_MAX - file.tell(), ""
        for text, problem in _output(client, context, name):
            file.write(text.encode()[: max(0, room)])
            room -= len(text.encode())
            last = text.strip() or last
            if problem:
                raise NotBuilt(f"{problem}; the end of its output is: {_line(last)}")
            if time.monotonic() > deadline_s:
                raise NotBuilt(f"it takes longer than {BUILD_TIMEOUT_S:g} s")


def _output(client: docker.DockerClient, context: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts that a build prints, each with the problem that has ended it, or nothing."""
    try:
        made: Iterator[dict[str, Any]] = client.api.build(
            path=str(context), tag=name, rm=True, forcerm=True, decode=True
        )
        for each in made:
            yield str(each.get("stream", "")), _line(str(each.get("error", "")))
    except (DockerException, StreamParseError, HTTPError) as error:
        # The last two are raised while the output is read, such as after a long silence.
        yield "", _line(str(getattr(error, "explanation", None) or error))


def _line(text: str) -> str:
    return " ".join(text.split())[-300:]
