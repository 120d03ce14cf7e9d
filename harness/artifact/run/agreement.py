"""replay.json: how many decisions of the original run a replay repeated.

    replayed.bin  | A | B | C | D |
    decisions.bin | A | C | D |          3 of 4 repeated, the frame of B never appeared

Decisions are compared by frame, attempt and action, never by time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from windtunnel.harness.artifact.document_values import parse, refuse
from windtunnel.harness.artifact.documents import Document, StoredDocument
from windtunnel.harness.artifact.middlebox.decision import ACTIONS, IDENTITY, LINKS, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.artifact.records import Records

LISTED_MAX = 100
"""Maximum number of missing frames that are listed individually."""
_FRAME_KEYS = ("frame_type", "stream_id", "link")
_PLACED = ("position", "attempt")
_KEY = (*IDENTITY, "action", "detail")


@dataclass
class Agreement(StoredDocument):
    """Comparison of a replay's decisions with those of the original run."""

    SCHEMA: ClassVar[str] = "windtunnel-replay/1"

    replays: str
    "Id of the original run."
    ordered: int
    "Number of decisions of the original run."
    repeated: int
    "Number of original decisions that were repeated for the same frames."
    added: int
    "Number of additional decisions: 0 unless the harness has a defect."
    never_came: list[dict[str, Any]] = field(default_factory=list)
    "The first frames that did not reappear: action, link, type, stream, position, attempt."

    @property
    def is_whole(self) -> bool:
        return self.repeated == self.ordered

    @property
    def text(self) -> str:
        """A one-line summary: how many of the original run's decisions the replay repeated."""
        summary = f"{self.repeated} of {self.ordered} decisions repeated"
        if self.is_whole:
            return summary
        missing = self.ordered - self.repeated
        frames = f"{missing} {noun_for(missing, 'frame')}"
        return f"{summary}; {frames} never appeared, the first is {self.first}"

    @property
    def first(self) -> str:
        """A description of the first frame whose recorded decision was not repeated, or an empty
        string if all decisions were repeated.
        """
        if not self.never_came:
            return ""
        frame = self.never_came[0]
        name = f"{frame['frame_type']} of stream {frame['stream_id']} on {frame['link']}"
        if "position" in frame:
            return f"{name} at position {frame['position']} in attempt {frame['attempt']}"
        return f"{name}, number {frame['order']} of its kind"

    @staticmethod
    def _adapted(document: Document) -> Document:
        """Check the frames that the document lists as not repeated. Raises ValueTypeError if one of
        their values is missing or has the wrong type.
        """
        listed = parse(list[dict[str, str | int]], document.get("never_came", []), "never_came")
        for index, frame in enumerate(listed):
            missing = [*_FRAME_KEYS, *(_PLACED if "position" in frame else ("order",))]
            for key in missing:
                if key not in frame:
                    raise refuse(f"never_came[{index}].{key}", "a value", None)
        return document


def agreement(
    replays: str, ordered: Records, made: Records, links: Sequence[str] = LINKS
) -> Agreement:
    """Compare a replay's decisions with the original run's decisions. `links` contains the names of
    the link directions, indexed by link code.

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
        never_came=[_as_document(each, links) for each in missing[:LISTED_MAX]],
    )


def _keys(records: Records) -> list[tuple[int, ...]]:
    return list(zip(*(records[name].tolist() for name in _KEY), strict=True))


def _as_document(record: Any, links: Sequence[str]) -> dict[str, Any]:
    link, code, action = (int(record[name]) for name in ("link", "frame_type", "action"))
    document = {
        "action": ACTIONS.get(action, str(action)),
        "link": links[link] if link < len(links) else str(link),
        "frame_type": NAMES.get(code, str(code)),
        "stream_id": int(record["stream_id"]),
    }
    names = ("order",) if record["position"] == NO_POSITION else ("session", "position", "attempt")
    return {**document, **{name: int(record[name]) for name in names}}
