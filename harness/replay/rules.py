"""Converts the middlebox's decisions to fault rules with the same effect on the same frames.

    drop DATA at 1408 in attempt 1, 1408 bytes
    drop DATA at 2816 in attempt 1, 1408 bytes   -->   position: {from: 1408B, length: 2816B}
    drop NAK, the 3rd of its kind                -->   order: 3

Adjacent frames become one range. Each rule applies to every frame that it selects. Only the
position of a flipped bit is still random.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from windtunnel.harness.artifact.middlebox.decision import NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.scenario.schema.units import format_bytes

Document = dict[str, Any]
Range = tuple[int, int]
"""Begin and end of a half-open range."""


class SelectedFrame(NamedTuple):
    """One transmission of a frame, and the act (such as drop or hold) that a rule applied to it."""

    act: int
    """Index of the frame's act in the list of acts."""
    link: int
    frame_type: str
    stream_id: int
    session: int
    position: int
    length: int
    attempt: int
    order: int = 0
    """For a frame without a position: its number among the frames of its type. The previous four
    fields do not apply.
    """


def rules_of(
    decisions: Records, acts: Sequence[Document], directions: Sequence[tuple[str, str]]
) -> list[Document]:
    """Return fault rules that have the same effect on the same frames as the given middlebox
    decisions.

    Shapes: acts: the act of each rule in the run's scenario file, by rule number; directions: the
    sending and receiving host of each link direction, by code
    """
    names: tuple[str, ...] = ("rule", "link", "frame_type", "stream_id", "session")
    names += ("position", "frame_length", "attempt", "order")
    columns = [decisions[name].tolist() for name in names]
    selected = [
        SelectedFrame(*row)._replace(frame_type=NAMES[row[2]]) for row in zip(*columns, strict=True)
    ]
    return rules_for(selected, [always(each) for each in acts], directions)


def rules_for(
    selected: Iterable[SelectedFrame],
    acts: Sequence[Document],
    directions: Sequence[tuple[str, str]],
) -> list[Document]:
    """Return fault rules that apply the given acts, such as drop or hold, to exactly the given
    frames.
    """

    def kind(frame: SelectedFrame) -> tuple[int, int, str, int, int]:
        return frame[:5]

    rules = []
    for (act, link, frame_type, stream_id, session), group in groupby(
        sorted(selected, key=kind), kind
    ):
        sender, receiver = directions[link]
        what: Document = {"type": frame_type, "stream": stream_id}
        for chosen, attempt in _choices(list(group), session):
            fault: Document = {
                "where": {"link": f"{sender}->{receiver}"},
                "what": {**what, **chosen},
            }
            rules.append({**fault, **attempt, "act": acts[act]})
    return [{"id": f"rule-{number}", **rule} for number, rule in enumerate(rules, 1)]


def range_count(rules: Iterable[Document]) -> int:
    """Return the total number of position ranges in fault rules. A rule without positions counts as
    one range.
    """
    return sum(len(each["what"].get("position", {}).get("ranges", [0])) for each in rules)


def always(act: Document) -> Document:
    """Return a copy of a fault rule's act that affects all selected frames instead of a share of
    them.
    """
    ((name, value),) = act.items()
    if name == "readdress":
        return act
    if not isinstance(value, dict) or (name != "inject" and "share" not in value):
        return {name: "always"}
    if name == "inject":
        return {name: {"frames": value["frames"]}}
    return {name: {**value, "share": "always"}}


def simpler(act: Document) -> Iterator[Document]:
    """Yield variants of a fault rule's act that are simpler than the act, the simplest first."""
    ((name, value),) = act.items()
    if name == "drop":
        return
    if name != "readdress":
        yield {"drop": "always"}
    if not isinstance(value, dict):
        return
    if name == "duplicate":
        yield {"duplicate": "always"}
        if value.get("copies", 1) > 1:
            yield {"duplicate": {key: each for key, each in value.items() if key != "copies"}}
    if name == "hold" and "until" in value:
        yield {"hold": {"share": "always", "for": value["at_most"]}}
    if name == "inject":
        for forged in value["frames"] if len(value["frames"]) > 1 else ():
            yield {"inject": {"frames": [forged]}}


def _choices(group: list[SelectedFrame], session: int) -> Iterator[tuple[Document, Document]]:
    """Yield pairs of conditions that select the given frames. The first condition is on the
    position or order of the frames, and the second one on their transmission attempts.
    """
    orders = sorted(each.order for each in group if each.position == NO_POSITION)
    for first, end in merged((each, each + 1) for each in orders):
        last = end - 1
        yield {"order": first if first == last else {"from": first, "to": last}}, {}
    attempts: dict[Range, set[int]] = {}
    for frame in group:
        if frame.position != NO_POSITION:
            span = frame.position, frame.position + frame.length
            attempts.setdefault(span, set()).add(frame.attempt)
    ranges: dict[Range, list[Range]] = {}
    for span, transmissions in attempts.items():
        for first, end in merged((each, each + 1) for each in transmissions):
            ranges.setdefault((first, end - 1), []).append(span)
    for (first, last), spans in sorted(ranges.items()):
        chosen: Document = {"session": session} if session > 1 else {}
        chosen["position"] = position(merged(spans))
        yield chosen, {"attempt": first if first == last else {"from": first, "to": last}}


def position(ranges: Sequence[Range]) -> Document:
    """Format stream position ranges as the value of the `position` key in a scenario file."""
    spans = [
        {"from": format_bytes(begin), "length": format_bytes(end - begin)} for begin, end in ranges
    ]
    return spans[0] if len(spans) == 1 else {"ranges": spans}


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Sort ranges and merge those that touch or overlap."""
    found: list[Range] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found
