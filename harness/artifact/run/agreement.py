"""replay.json: how far a run repeated the decisions of another.

    replayed.bin  | A | B | C | D |
    decisions.bin | A | C | D |          3 of 4 repeated, B never came

Decisions are compared by the frame that they were about, its attempt and what became of it, never
by time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document
from windtunnel.harness.artifact.middlebox.decision import ACTIONS, IDENTITY, LINKS, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.records import Records

SCHEMA = "windtunnel-replay/1"
LISTED_MAX = 100
"""Frames that are told one by one."""
_KEY = (*IDENTITY, "action", "detail")


@dataclass
class Agreement:
    """The decisions of one run beside those that it was to repeat."""

    replays: str
    "Id of the run that made the decisions first."
    ordered: int
    "How many there were."
    repeated: int
    "How many of those were made again, about the same frames."
    added: int
    "Decisions that nobody ordered: always none, but for a defect of the harness."
    never_came: list[dict[str, Any]] = field(default_factory=list)
    "The first frames that did not come by again: action, link, type, stream, position, attempt."

    @property
    def is_whole(self) -> bool:
        return self.repeated == self.ordered

    @property
    def text(self) -> str:
        """One line for people."""
        told = f"{self.repeated} of {self.ordered} decisions repeated"
        if self.is_whole:
            return told
        return f"{told}; {self.ordered - self.repeated} frames never came, first {self.first}"

    @property
    def first(self) -> str:
        """The first frame that never came, in words."""
        if not self.never_came:
            return ""
        frame = self.never_came[0]
        name = f"{frame['frame_type']} of stream {frame['stream_id']} on {frame['link']}"
        if "position" in frame:
            return f"{name} at position {frame['position']} in attempt {frame['attempt']}"
        return f"{name}, the {frame['order']}. of them"

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Agreement | None":
        """The agreement, or None without a replay; DocumentError when it is not understood."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        try:
            return cls(**{key: value for key, value in document.items() if key != "schema"})
        except TypeError as error:
            raise DocumentError(f"{path.name}: {error}") from error


def agreement(
    replays: str, ordered: Records, made: Records, links: Sequence[str] = LINKS
) -> Agreement:
    """Compare what was ordered with what was done; `links` are the names of links by code.

    Shapes: ordered, made DECISION[n], DECISION[m]
    """
    left = Counter(_keys(made))
    missing = []
    for record, key in zip(ordered, _keys(ordered), strict=True):
        if left[key]:
            left[key] -= 1
        else:
            missing.append(record)
    return Agreement(
        replays,
        ordered=len(ordered),
        repeated=len(ordered) - len(missing),
        added=left.total(),
        never_came=[_told(each, links) for each in missing[:LISTED_MAX]],
    )


def _keys(records: Records) -> list[tuple[int, ...]]:
    return list(zip(*(records[name].tolist() for name in _KEY), strict=True))


def _told(record: Any, links: Sequence[str]) -> dict[str, Any]:
    link, code, action = (int(record[name]) for name in ("link", "frame_type", "action"))
    told = {
        "action": ACTIONS.get(action, str(action)),
        "link": links[link] if link < len(links) else str(link),
        "frame_type": NAMES.get(code, str(code)),
        "stream_id": int(record["stream_id"]),
    }
    names = ("order",) if record["position"] == NO_POSITION else ("session", "position", "attempt")
    return {**told, **{name: int(record[name]) for name in names}}
