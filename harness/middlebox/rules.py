"""The fault rules of a scenario as a table for compiled kernels, with one record per rule in file
order.

    case.faults[i]  --compile-->  RULES[i]: its conditions, time, probability, action

Links and frame classes are bit masks, and shares are thresholds of a draw. Frame classes have a
dense index here, because Aeron's type codes have a gap and the harness's additional codes are far
above them.
"""

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox import decision, frame_class

CLASSES: tuple[int, ...] = tuple(sorted(frame_class.NAMES))
"""Frame class codes, in the order of their class indexes."""

NO_RULE = -1
NOT_SHARED = -1
"""Value of `shared_link` if each link direction has its own draws."""
NOWHERE = -1
"""Value of a stream ordinal if the rule waits for no stream position."""

# Values of `place`.
ANYWHERE, RANGE, TERM_START, TERM_END, STREAM_END, RANGES = range(6)
# Values of `chance`.
INDEPENDENT, TWO_STATES, FOUR_STATES = range(3)
# Values of `ending`.
BY_TIME, BY_FRAMES, BY_ADVANCE, BY_CONSUMPTION, BY_REPETITION = range(5)

RULE = np.dtype(
    [
        # conditions
        ("links", "<i8"),  # bit per link direction
        ("shared_link", "<i8"),  # the direction whose draws all directions use, or NOT_SHARED
        ("classes", "<i8"),  # bit per class index
        ("session", "<i8"),  # number on its stream, 0 for all
        ("flags_mask", "<i8"),
        ("flags_value", "<i8"),
        ("place", "<i8"),
        ("place_start", "<i8"),
        ("place_length", "<i8"),
        ("place_every", "<i8"),  # 0: once
        ("first_range", "<i8"),  # index of the first of a list of ranges
        ("ranges", "<i8"),  # count of the list
        ("order_first", "<i8"),  # counted from 1, as attempts are
        ("order_last", "<i8"),
        ("order_every", "<i8"),
        ("attempt_first", "<i8"),
        ("attempt_last", "<i8"),
        ("attempt_every", "<i8"),
        ("longer_than", "<i8"),  # bytes of the frame in its datagram
        # time
        ("is_timed", "<i8"),
        ("after_ns", "<i8"),
        ("for_ns", "<i8"),  # 0: unbounded
        ("every_ns", "<i8"),  # 0: once
        ("reached_ordinal", "<i8"),  # or NOWHERE
        ("reached_position", "<i8"),
        ("until_ordinal", "<i8"),  # or NOWHERE
        ("until_position", "<i8"),
        # probability
        ("chance", "<i8"),
        ("threshold", "<i8"),  # matches if the draw is below: the long-run share
        ("step_0", "<i8"),  # thresholds of a chain's shares, in the order of their fields
        ("step_1", "<i8"),
        ("step_2", "<i8"),
        ("step_3", "<i8"),
        ("step_4", "<i8"),
        # action
        ("action", "<i8"),  # a code of windtunnel.harness.artifact.middlebox.decision
        ("delay_ns", "<i8"),  # hold, copy: how long; swap, displace: how long at most
        ("ending", "<i8"),  # the event that ends a hold before `delay_ns` is over
        ("ending_value", "<i8"),
        ("copies", "<i8"),
        ("bits", "<i8"),
        ("cut_to", "<i8"),
        ("first_forged", "<i8"),  # index of the first template
        ("forged", "<i8"),  # count of templates
        ("source_port", "<i8"),
    ]
)

_FIRST_OWN = frame_class.HEARTBEAT
_FIRST_OWN_INDEX = CLASSES.index(frame_class.HEARTBEAT)
_RSP_SETUP = frame_class.RSP_SETUP
_RSP_SETUP_INDEX = CLASSES.index(frame_class.RSP_SETUP)

assert CLASSES[:_RSP_SETUP_INDEX] == tuple(range(_RSP_SETUP_INDEX))
assert CLASSES[_FIRST_OWN_INDEX:] == tuple(range(_FIRST_OWN, _FIRST_OWN + 3))
assert set(decision.ACTIONS) == set(range(1, 10))


@kernel
def draw_link(shared_link: int, link: int) -> int:
    """Return the link direction whose draws decide about a frame, given the `shared_link` of the
    rule and the frame's own direction.
    """
    return link if shared_link == NOT_SHARED else shared_link


@kernel
def class_index(code: int) -> int:
    """Return the index of a frame class code in CLASSES."""
    if code >= _FIRST_OWN:
        return code - _FIRST_OWN + _FIRST_OWN_INDEX
    return _RSP_SETUP_INDEX if code == _RSP_SETUP else code
