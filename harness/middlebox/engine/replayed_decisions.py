"""The middlebox decisions recorded in an earlier run, as a table that a replay searches.

    decisions.bin  --compile_decisions-->  REPLAYED_DECISION[n], sorted by frame
    frame  --find-->  the rule that was applied to it, and the detail of its action

A replay searches this table instead of the rules, so the conditions of the rules have no effect. A
rule still determines the details of its action: how long a frame is held, which frame is forged.
The engine applies actions in the same way with and without a replay.

Two transmissions of one position count as the same attempt if they are four terms apart. Their
decisions are then applied in order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.decision import ACTIONS, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import NAMES, POSITIONAL
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.middlebox.rules import class_index
from windtunnel.harness.scenario.resolved.case import Case

REPLAYED_DECISION = np.dtype(
    [
        ("what", "<i8"),  # kind of frame, see `kind_of_frame`
        ("place", "<i8"),  # position, or order of appearance
        ("attempt", "<i8"),  # 0 if keyed by order
        ("rule", "<i8"),
        ("detail", "<i8"),  # first flipped bit, or bytes kept
        ("is_used", "<i8"),  # 1: its frame has been matched
    ]
)
ReplayedDecisions = NDArray[Any]
NONE = -1


class ReplayError(ValueError):
    """Raised if a recorded decision does not fit the scenario that is replayed. The message names
    the decision and the reason.
    """


@kernel
def kind_of_frame(link: int, index: int, ordinal: int, session: int) -> int:
    """Encode link, class, stream and session of a frame as one integer, by which recorded decisions
    are sorted.

    `session` is 0 for a frame that is identified by its order of appearance.
    """
    return ((ordinal << 16 | session) << 8 | index) << 8 | link


@kernel
def find(replayed: Any, what: int, place: int, attempt: int) -> int:
    """Return the index of the first recorded decision for a frame that has not been applied yet, or
    NONE.

    Shapes: replayed REPLAYED_DECISION[n], sorted by what, place, attempt
    """
    low, high = 0, len(replayed)
    while low < high:
        middle = (low + high) // 2
        entry = replayed[middle]
        is_before = entry["what"] < what
        if entry["what"] == what:
            is_before = entry["place"] < place
            if entry["place"] == place:
                is_before = entry["attempt"] < attempt
        if is_before:
            low = middle + 1
        else:
            high = middle
    while low < len(replayed):
        entry = replayed[low]
        if entry["what"] != what or entry["place"] != place or entry["attempt"] != attempt:
            return NONE
        if entry["is_used"] == 0:
            return low
        low += 1
    return NONE


def compile_decisions(case: Case, decisions: Records) -> ReplayedDecisions:
    """Convert a decision log to a table sorted by frame, which a replay searches.

    Raises ReplayError for a decision that refers to anything that is not in the case.
    """
    stream_ids = sorted(traffic.stream_id for traffic in case.traffic)
    ordinals = {stream_id: ordinal for ordinal, stream_id in enumerate(stream_ids)}
    # The ordinal after the last stream is for an SM to any sender, which names no stream.
    ordinals.setdefault(0, len(stream_ids))
    replayed = np.zeros(len(decisions), dtype=REPLAYED_DECISION)
    for index, (entry, decision) in enumerate(zip(replayed, decisions, strict=True)):
        fault = _fault(case, decision, ordinals)
        if fault:
            raise ReplayError(f"decision {index + 1} of {len(decisions)}: {fault}")
        is_placed = decision["position"] != NO_POSITION
        entry["what"] = kind_of_frame(
            int(decision["link"]),
            class_index(int(decision["frame_type"])),
            ordinals[int(decision["stream_id"])],
            int(decision["session"]) if is_placed else 0,
        )
        entry["place"] = decision["position"] if is_placed else decision["order"]
        entry["attempt"] = decision["attempt"] if is_placed else 0
        entry["rule"] = decision["rule"]
        entry["detail"] = decision["detail"]
    return np.sort(replayed, order=["what", "place", "attempt"], kind="stable")


def _fault(case: Case, decision: Any, ordinals: dict[int, int]) -> str:
    """Return the reason why a recorded decision is impossible, or an empty string if the decision
    is valid.
    """
    rule, link, code = (int(decision[name]) for name in ("rule", "link", "frame_type"))
    stream_id, position = int(decision["stream_id"]), int(decision["position"])
    if rule >= len(case.faults):
        return f"expected one of {len(case.faults)} rules, found rule {rule}"
    action = ACTIONS.get(int(decision["action"]), str(decision["action"]))
    if action != case.faults[rule].action:
        return f"expected {case.faults[rule].action}, the action of rule {rule}, found {action}"
    if link >= len(case.directions):
        return f"expected one of {len(case.directions)} link directions, found {link}"
    if stream_id not in ordinals:
        return f"expected one of the streams {', '.join(map(str, ordinals))}, found {stream_id}"
    if code not in NAMES or (position != NO_POSITION and code not in POSITIONAL):
        return f"frames of class {code} have no position, found position {position}"
    if position == NO_POSITION and int(decision["order"]) < 1:
        return f"expected an order of appearance of at least 1, found {int(decision['order'])}"
    attempt, detail = int(decision["attempt"]), int(decision["detail"])
    if position != NO_POSITION and (position < 0 or attempt < 1):
        return f"expected position >= 0 and attempt >= 1, found {position} and {attempt}"
    return "" if detail >= 0 else f"expected a detail of at least 0, found {detail}"
