"""Finds a NAK that was repeated too late or too early, if a receiver sends NAKs for all gaps.

    NAK ---- timeout, doubled with each NAK ----> NAK        while the position is missing

A frame that fills the begin of the gap restarts the delay, and the end of a silence ends the
doublings. The timeout is that of `retry_model`. The mode is Windtunnel's: docs/loss-recovery.md.
"""

from bisect import bisect_right
from itertools import pairwise

import numpy as np

from windtunnel.harness.verdict.checks.retransmission.all_gaps import NEVER_NS, SILENCE_NS
from windtunnel.harness.verdict.checks.retransmission.retry_model import (
    SAME_NS,
    Known,
    Lost,
    sure_until_ns,
    timeouts,
)
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import Pauses

TOLERANCE = 1.02
"""Of a timeout: the driver notices a repair, and sends a NAK, in the next turn of an agent. In
simulations, the capture's timeout was at most 0.7 % shorter than the driver's."""
UNSURE_TOLERANCE = 1.25
"""The same if a repair may not have been measured."""
EARLY_SHARE, EARLY_NS = 0.995, 150_000
"""A NAK is early if its delay is shorter than this share of the timeout, less this time."""


def late_retry(
    wire: Wire, lost: Lost, pauses: Pauses, *, least_ns: int, slack_ns: int, is_group: bool
) -> str:
    """Return what is wrong if a NAK is not repeated in time, or "".

    `least_ns` is the delay that was configured, `slack_ns` what a delay may exceed.
    """
    own = [lost.naks_of(place) for place in lost.places.tolist()]
    sure, unsure = (
        Known(*timeouts(lost, own, each, is_group=is_group), least_ns)
        for each in (TOLERANCE, UNSURE_TOLERANCE)
    )
    sure_ns = NEVER_NS if is_group else sure_until_ns(lost, own)
    last_ns = int(wire.feedback_sent["time_ns"].max(initial=0))
    frame_ns, frames = wire.arrived.frames["time_ns"].astype(np.int64), wire.arrived.starts
    for place, came_ns, naks in zip(lost.places.tolist(), lost.came_ns.tolist(), own, strict=True):
        if len(naks) == 0:
            continue
        next_ns = np.minimum(np.append(lost.times_ns[naks[1:]], came_ns), min(came_ns, last_ns))
        for count, (nak, until_ns) in enumerate(zip(naks.tolist(), next_ns.tolist(), strict=True)):
            asked_ns = int(lost.times_ns[nak])
            known = sure if until_ns < sure_ns else unsure
            due_ns = known.due_ns(asked_ns, count)
            if until_ns <= due_ns + slack_ns:
                continue
            began_ns = None if known is unsure else lost.progress_ns(wire, nak, place, until_ns)
            if began_ns is None:
                inside = (frames >= lost.starts[nak]) & (frames < lost.ends[nak])
                began_ns = int(frame_ns[inside & (frame_ns < until_ns)].max(initial=asked_ns))
            is_own = (
                count == 0 and known is sure and began_ns == lost.came_at(int(lost.starts[nak]))
            )
            due_ns = max(due_ns, known.due_ns(began_ns, count, is_measured=is_own))
            waited_ns = due_ns - asked_ns + slack_ns
            due_ns = int(pauses.due_ns(np.array([asked_ns]), waited_ns)[0])
            if until_ns > due_ns:
                return (
                    f"NAK {count + 2} for position {place} was not sent until {waited_ns} ns after "
                    "the one before, while it was missing: the repairs until then allow a shorter "
                    "delay"
                )
    return ""


def early_retry(wire: Wire, lost: Lost, *, least_ns: int) -> str:
    """Return what is wrong if one receiver repeats a NAK too early, or ""."""
    own = [lost.naks_of(place) for place in lost.places.tolist()]
    times_ns, timeouts_ns = timeouts(lost, own, EARLY_SHARE, is_group=False)
    known = Known(times_ns, timeouts_ns, least_ns)
    sure_ns, silences_ns = sure_until_ns(lost, own), _silences_ns(wire)
    for place, naks in zip(lost.places.tolist(), own, strict=True):
        asked = lost.times_ns[naks].tolist()
        for count, (nak, (asked_ns, again_ns)) in enumerate(
            zip(naks.tolist(), pairwise(asked), strict=False)
        ):
            ended = bisect_right(silences_ns, again_ns) - bisect_right(silences_ns, asked[0])
            if ended or again_ns >= sure_ns or again_ns - asked_ns <= SAME_NS:
                continue
            delay_ns = known.least_delay_ns(asked_ns, again_ns, count) - EARLY_NS
            began_ns = lost.progress_ns(wire, nak, place, again_ns)
            if began_ns is not None and began_ns > asked_ns:
                restarted_ns = known.restarted_delay_ns(began_ns, count) - EARLY_NS
                delay_ns = max(delay_ns, began_ns + restarted_ns - asked_ns)
            if again_ns - asked_ns < delay_ns:
                return (
                    f"NAK {count + 2} for position {place} was sent {again_ns - asked_ns} ns after "
                    f"the one before, expected {delay_ns} ns at least, as long as the repairs "
                    "until then took"
                )
    return ""


def _silences_ns(wire: Wire) -> list[int]:
    """Return when packets of the stream arrived after a silence."""
    frames_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    packets_ns = np.sort(np.concatenate([frames_ns, wire.heartbeat_times_ns]))
    found: list[int] = packets_ns[1:][np.diff(packets_ns) >= SILENCE_NS].tolist()
    return found
