"""The case's faults as a table that a kernel can walk.

    case.faults[i]  ->  RULES[i]: links and classes as bit masks, share as a threshold of the draw

Rules are tried in this order and the first that fires decides. Frame classes have a dense index
here (Aeron's type codes have a gap, and our own classes lie far above).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.artifact import decision, frame_class
from harness.kernel import kernel
from harness.middlebox.prf import DRAW_BITS, draw
from harness.scenario.case import LINK_NAMES, Case, FaultCase
from harness.scenario.units import BILLION

CLASSES: tuple[int, ...] = tuple(sorted(frame_class.NAMES))
"""Frame class codes by class index."""

SWAP_PATIENCE_NS = 1_000_000
"""How long a swapped frame waits for a neighbour before it leaves alone."""

NO_RULE = -1

RULE = np.dtype(
    [
        ("threshold", "<i8"),  # fires when the draw is below
        ("delay_ns", "<i8"),  # hold: how long; swap: how long at most
        ("links", "<i8"),  # bit per link direction
        ("classes", "<i8"),  # bit per class index
        ("action", "<i8"),  # a code of harness.artifact.decision
    ]
)

_ACTIONS = {name: code for code, name in decision.ACTIONS.items()}
_FIRST_OWN = frame_class.HEARTBEAT
_FIRST_OWN_INDEX = CLASSES.index(frame_class.HEARTBEAT)
_RSP_SETUP = frame_class.RSP_SETUP
_RSP_SETUP_INDEX = CLASSES.index(frame_class.RSP_SETUP)

assert CLASSES[:_RSP_SETUP_INDEX] == tuple(range(_RSP_SETUP_INDEX))
assert CLASSES[_FIRST_OWN_INDEX:] == tuple(range(_FIRST_OWN, _FIRST_OWN + 3))
assert decision.LINKS == LINK_NAMES


def compile_rules(case: Case) -> NDArray[Any]:
    """The case's faults as records RULE."""
    rules = np.zeros(len(case.faults), dtype=RULE)
    for rule, fault in zip(rules, case.faults, strict=True):
        rule["threshold"] = (fault.share_ppb << DRAW_BITS) // BILLION
        rule["delay_ns"] = _delay_ns(fault)
        rule["links"] = sum(1 << LINK_NAMES.index(name) for name in fault.links)
        codes = {frame_class.CODES[name] for name in fault.frame_types}
        rule["classes"] = sum(1 << CLASSES.index(code) for code in codes)
        rule["action"] = _ACTIONS[fault.action]
    return rules


def _delay_ns(fault: FaultCase) -> int:
    return SWAP_PATIENCE_NS if fault.action == "swap" else fault.hold_ns


@kernel
def class_index(code: int) -> int:
    """The dense index of a frame class code."""
    if code >= _FIRST_OWN:
        return code - _FIRST_OWN + _FIRST_OWN_INDEX
    return _RSP_SETUP_INDEX if code == _RSP_SETUP else code


@kernel
def first_that_fires(
    rules: Any, seed: int, link: int, index: int, what: int, place: int, attempt: int
) -> int:
    """The rule that decides about a frame, or NO_RULE.

    Shapes: rules RULE[n]; `index` is the frame's class index, the rest as for prf.draw
    """
    for rule in range(len(rules)):
        applies = rules[rule]["links"] >> link & rules[rule]["classes"] >> index & 1
        if applies and draw(seed, rule, what, place, attempt) < rules[rule]["threshold"]:
            return rule
    return NO_RULE
