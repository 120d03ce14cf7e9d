"""Decisions of another run as a table: for each frame that it struck, what became of it.

    decisions.bin  --compile_fates-->  FATE[n], sorted by frame
    frame  --find-->  the rule whose act it suffered, and the detail of that

A replay asks this table in place of the rules, so whatever they would have looked at does not
matter. A rule still says how its act is done: how long a frame is held, which frame is forged. What
happens to a struck frame is the engine's affair, the same in either case.

Two passages of one place count as the same attempt when four terms lie between them; then the
decisions are taken in their order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.artifact.middlebox.decision import ACTIONS, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import NAMES, POSITIONAL
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.middlebox.rules import class_index
from windtunnel.harness.scenario.resolved.case import Case

FATE = np.dtype(
    [
        ("what", "<i8"),  # kind of frame, see `kind_of_frame`
        ("place", "<i8"),  # position, or order of appearance
        ("attempt", "<i8"),  # 0 by order
        ("rule", "<i8"),
        ("detail", "<i8"),  # first flipped bit, or bytes left
        ("is_met", "<i8"),  # 1: its frame has come
    ]
)
Fates = NDArray[Any]
NONE = -1


class FateError(ValueError):
    """A decision that cannot have been made in this case; the text says which, and why."""


@allocating_kernel
def kind_of_frame(link: int, index: int, ordinal: int, session: int) -> int:
    """Link, class index, stream ordinal and session number in one; no session by order."""
    return ((ordinal << 16 | session) << 8 | index) << 8 | link


@allocating_kernel
def find(fates: Any, what: int, place: int, attempt: int) -> int:
    """The index of the first fate of a frame that is not met yet, or NONE.

    Shapes: fates FATE[n], sorted by what, place, attempt
    """
    low, high = 0, len(fates)
    while low < high:
        middle = (low + high) // 2
        fate = fates[middle]
        is_before = fate["what"] < what
        if fate["what"] == what:
            is_before = fate["place"] < place
            if fate["place"] == place:
                is_before = fate["attempt"] < attempt
        if is_before:
            low = middle + 1
        else:
            high = middle
    while low < len(fates):
        fate = fates[low]
        if fate["what"] != what or fate["place"] != place or fate["attempt"] != attempt:
            return NONE
        if fate["is_met"] == 0:
            return low
        low += 1
    return NONE


def compile_fates(case: Case, decisions: Records) -> Fates:
    """The table of a log of decisions that were made under this case's rules.

    Raises FateError for a decision that names what the case does not have.
    """
    stream_ids = sorted(traffic.stream_id for traffic in case.traffic)
    ordinals = {stream_id: ordinal for ordinal, stream_id in enumerate(stream_ids)}
    # Behind the streams comes what is told to anyone, an SM that names none.
    ordinals.setdefault(0, len(stream_ids))
    fates = np.zeros(len(decisions), dtype=FATE)
    for index, (fate, decision) in enumerate(zip(fates, decisions, strict=True)):
        fault = _fault(case, decision, ordinals)
        if fault:
            raise FateError(f"decision {index + 1} of {len(decisions)}: {fault}")
        is_placed = decision["position"] != NO_POSITION
        fate["what"] = kind_of_frame(
            int(decision["link"]),
            class_index(int(decision["frame_type"])),
            ordinals[int(decision["stream_id"])],
            int(decision["session"]) if is_placed else 0,
        )
        fate["place"] = decision["position"] if is_placed else decision["order"]
        fate["attempt"] = decision["attempt"] if is_placed else 0
        fate["rule"] = decision["rule"]
        fate["detail"] = decision["detail"]
    return np.sort(fates, order=["what", "place", "attempt"], kind="stable")


def _fault(case: Case, decision: Any, ordinals: dict[int, int]) -> str:
    """What a decision names that cannot be; nothing if all is well."""
    rule, link, code = (int(decision[name]) for name in ("rule", "link", "frame_type"))
    stream_id, position = int(decision["stream_id"]), int(decision["position"])
    if rule >= len(case.faults):
        return f"expected one of {len(case.faults)} rules, found rule {rule}"
    action = ACTIONS.get(int(decision["action"]), str(decision["action"]))
    if action != case.faults[rule].action:
        return f"expected {case.faults[rule].action}, as rule {rule} orders, found {action}"
    if link >= len(case.directions):
        return f"expected one of {len(case.directions)} link directions, found {link}"
    if stream_id not in ordinals:
        return f"no stream {stream_id}: the streams are {', '.join(map(str, ordinals))}"
    if code not in NAMES or (position != NO_POSITION and code not in POSITIONAL):
        return f"no frame of class {code} has position {position}"
    if position == NO_POSITION and int(decision["order"]) < 1:
        return f"expected an order of appearance from 1 on, found {int(decision['order'])}"
    if position != NO_POSITION and (position < 0 or int(decision["attempt"]) < 1):
        return f"found position {position} in attempt {int(decision['attempt'])}"
    return "" if int(decision["detail"]) >= 0 else f"found detail {int(decision['detail'])}"
