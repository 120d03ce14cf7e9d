"""The impairments of a stream, and the frames that they drop, computed in advance.

The first rule decides about loss, by the position of a frame alone. Positions follow from the
messages, the MTU and the term length, whichever driver writes them.
"""

from tests.naive.expected_log import write_log
from tests.naive.fault_rules import draw
from tests.peer.bad_link import TO_FAR
from tests.peer.layouts import TERM_LENGTH
from tests.peer.streams import MESSAGES
from windtunnel.harness.artifact.middlebox.frame_class import DATA, NAMES, PAD
from windtunnel.harness.middlebox.engine.prf import DRAW_BITS
from windtunnel.harness.middlebox.rules import CLASSES
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.schema.units import BILLION

MTU = 1_408
SHARE_PPB = BILLION // 20
LATE_NS = 3_000_000
DATA_FRAMES = {"DATA": DATA, "PAD": PAD}


def _fault(action, kinds, links, hold_ns=0):
    return FaultCase(
        id=action, links=links, frame_types=tuple(kinds), action=action, share_ppb=SHARE_PPB,
        hold_ns=hold_ns,
    )  # fmt: skip


BAD = (
    _fault("drop", NAMES.values(), ("a->b", "b->a")),
    _fault("swap", DATA_FRAMES, ("a->b",)),
    _fault("hold", DATA_FRAMES, ("a->b",), LATE_NS),
)
"""5 % of all frames in both directions are lost; 5 % of the data frames are swapped with the next,
and 5 % are late."""


def expected_frames():
    """Return (position, type, frame length) of every frame of the messages."""
    frames, _ = write_log([len(each) for each in MESSAGES], MTU, TERM_LENGTH)
    return [frame[:3] for frame in frames]


def expected_losses(seed):
    """Return the positions of the frames that `BAD` drops when they are first sent over a link."""
    limit = SHARE_PPB * (1 << DRAW_BITS) // BILLION
    return {
        position
        for position, kind, _ in expected_frames()
        if draw(seed, 0, TO_FAR, CLASSES.index(DATA_FRAMES[kind]), 0, 0, position, 1)[0] < limit
    }


def data_bytes(positions):
    """Return the bytes of the data frames at some positions in a log, without padding."""
    return sum(
        (length + 31) // 32 * 32
        for position, kind, length in expected_frames()
        if kind == "DATA" and position in positions
    )
