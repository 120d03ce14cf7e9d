"""The counters of a driver in a live lab, read from its shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.artifact.regular_file import UnsafeFileError
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError
from windtunnel.harness.inspect.aeron_dir import NothingThereError, read_driver
from windtunnel.harness.orchestrate.lab import ContainerLab, Lab
from windtunnel.harness.orchestrate.live.live_scenario import OptionError


@dataclass(frozen=True)
class Selection:
    """Which counters a program requests."""

    name: str
    """The beginning of the label, such as `sub-pos` or `Bytes sent`."""
    stream: int | None
    session: int | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Selection:
        """Return the selection that a request describes."""
        stream, session = document.get("stream"), document.get("session")
        if not all(each is None or type(each) is int for each in (stream, session)):
            raise OptionError("stream and session: expected whole numbers")
        return cls(str(document["counter"]), stream, session)

    @property
    def text(self) -> str:
        stream = "" if self.stream is None else f" of stream {self.stream}"
        return f"{self.name}{stream}"

    def has(self, counter: CounterFacts) -> bool:
        """Return whether a counter is one of those requested."""
        if not counter.label.startswith(self.name):
            return False
        if self.stream is None and self.session is None:
            return True
        if counter.type_id not in counter_key.STREAM_TYPES:
            return False
        session, stream = counter_key.session_and_stream(counter)
        return self.stream in (None, stream) and self.session in (None, session)


def counters(lab: Lab, host: str, directory: str) -> list[CounterFacts]:
    """Return the counters of the driver in a directory of a host, or none while it has not started.

    Raises OptionError if the directory is not one, for example a link that a container has created.
    """
    opened = lab.outside if isinstance(lab, ContainerLab) else _own
    try:
        with opened(host, directory) as path:
            return list(read_driver(path).counters())
    except UnsafeFileError as error:
        raise OptionError(f"the counters of host {host} cannot be read: {error}") from error
    except (NothingThereError, CncFileError, OSError):
        return []


def _own(host: str, directory: str) -> AbstractContextManager[Path]:
    return nullcontext(Path(directory))


def documents(counters: Sequence[CounterFacts]) -> list[dict[str, Any]]:
    """Return counters as documents."""
    found = []
    for each in counters:
        document: dict[str, Any] = {"label": each.label, "value": each.final_value}
        document |= {"id": each.counter_id, "type": each.type_id}
        if each.type_id in counter_key.STREAM_TYPES:
            session, stream = counter_key.session_and_stream(each)
            document |= {"session": session, "stream": stream}
        found.append(document)
    return found


def largest(counters: Sequence[CounterFacts], selected: Selection) -> int | None:
    """Return the largest value of the selected counters, or None if there are none."""
    return max((each.final_value for each in counters if selected.has(each)), default=None)
