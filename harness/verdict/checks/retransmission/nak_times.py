"""Check that a NAK is sent when it is due: not before the NAK delay, and not long after it.

    f0    f2                              f1
    | gap |---- NAK delay ----> NAK ---- retry delay ----> NAK       while the gap is the same

    one receiver    the delay is fixed, and a retry is RETRY_RATIO times as long
    a group         the delay is random, at most the maximum backoff; few receivers send it early

After each 16 NAKs for a gap, the driver `ours` doubles the retry delay. If it sends NAKs for all
gaps, the retries depend on the times of repairs: `naks_paced` judges which are too early, and
`retry_times` which are too late. The times are compared in a simulation: only there, nothing but
the driver can be late.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.all_gaps import has_all_gaps
from windtunnel.harness.verdict.checks.retransmission.nak_checks import (
    NAK_DELAY_NS,
    RETRY_RATIO,
)
from windtunnel.harness.verdict.checks.retransmission.retry_model import Lost
from windtunnel.harness.verdict.checks.retransmission.retry_times import early_retry, late_retry
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.statistics.binomial import interval
from windtunnel.harness.verdict.views.feedback_limits import withheld
from windtunnel.harness.verdict.views.first_gaps import first_gaps
from windtunnel.harness.verdict.views.pauses import Pauses, as_read, pauses_of
from windtunnel.harness.verdict.views.series import highest_by

IN_TIME = "naks_in_time"

NAK_LENGTH = 28
"""Length of a NAK frame."""

SLACK_NS = 500_000
"""Time that a driver needs to find a gap, and to pass its NAK on. A simulated turn takes 0.1 ms,
and idle agents sleep for several of them: the real C driver was up to 0.4 ms late."""
GROUP_BACKOFF_NS = 10_000_000
"""Maximum NAK delay in a group. Source: Aeron 1.53, aeron.nak.multicast.max.backoff."""
GROUP_SIZE = 10
"""Group size that the random delay assumes. Source: Aeron 1.53, aeron.nak.multicast.group.size."""
NAKS_PER_BACKOFF, BACKOFFS_MAX = 16, 4
"""After how many NAKs for a gap the retry delay doubles, and how often. Source:
docs/loss-recovery.md."""
NAKS_MAX = 64
"""Number of NAKs of a gap that are judged. The source of a stream in which nothing else arrives
does not pay for more of them."""
SHARES = (0.1, 0.3, 0.5, 0.7)
"""Shares of the random delays at which their distribution is compared."""
CONFIDENCE = 1 - 1e-9
_UNKNOWN_NS = np.iinfo(np.int64).max


@dataclass(frozen=True)
class _Delays:
    """The delays that a receiver was configured with."""

    least_ns: int
    most_ns: int
    retry_ns: int
    is_random: bool


def naks_in_time(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A NAK is sent after the NAK delay, and again after each retry delay, until its gap changes;
    in a group, few NAKs are early. Compared in a simulation.
    """
    wire, planned, pauses, case = present(
        evidence.wire(traffic),
        evidence.planned(traffic),
        pauses_of(evidence, traffic.to_host),
        evidence.case,
    )
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    if not is_virtual(case):
        text = "not compared: in real time, the machine can delay a NAK"
        return passed(IN_TIME, text, traffic.id, evidence=where)
    wire, delays = as_read(wire, pauses), _delays(traffic)
    start = max(planned.log.start_position, evidence.join_position(traffic))
    if has_all_gaps(evidence, traffic):
        gaps, problem = _all_gaps(wire, start, delays, pauses)
    else:
        gaps, problem = _first_gaps(wire, start, delays, pauses)
        if problem:
            limits = withheld(evidence, traffic, wire, NAK_LENGTH, is_nak=True)
            gaps, problem = _first_gaps(wire, start, delays, pauses, limits)
    if not problem and delays.is_random:
        problem = _too_early_for_a_group(gaps)
    facts = {"gaps": len(gaps)}
    if problem:
        return failed(IN_TIME, problem, traffic.id, evidence=where, facts=facts)
    known = gaps[gaps != _UNKNOWN_NS]
    text = f"{len(known)} gaps were requested"
    if len(known):
        text += f" {int(known.min())} to {int(known.max())} ns after they could be found"
    return passed(IN_TIME, text, traffic.id, evidence=where, facts=facts)


def _delays(traffic: TrafficCase) -> _Delays:
    channel = parse_channel(traffic.channel)
    if channel.is_group:
        return _Delays(0, GROUP_BACKOFF_NS, GROUP_BACKOFF_NS, is_random=True)
    delay_ns = parse_channel(traffic.receive).nak_delay_ns
    delay_ns = NAK_DELAY_NS if delay_ns is None else delay_ns
    return _Delays(delay_ns, delay_ns, delay_ns * RETRY_RATIO, is_random=False)


def _last_ns(wire: Wire) -> int:
    """Return the last time at which the image certainly existed."""
    return int(wire.feedback_sent["time_ns"].max(initial=0))


def _first_gaps(
    wire: Wire, start: int, delays: _Delays, pauses: Pauses, limits: Pauses | None = None
) -> tuple[NDArray[np.int64], str]:
    """Return the delay of the first NAK of each period of the first gap, and what is wrong.

    `limits` are the times at which NAKs may have been withheld. It is unknown when a receiver
    repeats the NAKs for a gap after that.
    """
    naks = wire.naks(wire.feedback_sent)
    starts, ends = wire.nak_ranges(naks)
    times_ns = naks["time_ns"].astype(np.int64)
    gaps = first_gaps(wire, start, _last_ns(wire))
    waits: list[int] = []
    counts: dict[int, int] = {}
    limited: set[int] = set()
    rows = zip(gaps.starts, gaps.ends, gaps.since_ns, gaps.until_ns, strict=True)
    for begin, end, since_ns, until_ns in (tuple(map(int, each)) for each in rows):
        own = times_ns[(starts == begin) & (ends == end)]
        first = int(np.searchsorted(own, since_ns))
        # A NAK may leave while the frame that ends its gap arrives.
        own = own[first : int(np.searchsorted(own, until_ns + SLACK_NS))]
        waits.append(int(own[0]) - since_ns if len(own) else _UNKNOWN_NS)
        if len(own) and waits[-1] + SLACK_NS < delays.least_ns:
            text = f"the NAK for position {begin} was sent {waits[-1]} ns after its gap could be "
            return np.array(waits), f"{text}found, expected a delay of {delays.least_ns} ns"
        before_ns, delay_ns = since_ns, delays.most_ns
        for nak_ns in (*own.tolist(), _UNKNOWN_NS):
            due_ns = int(pauses.due_ns(np.array([before_ns]), delay_ns + SLACK_NS)[0])
            if limits is not None and limits.overlaps(before_ns, min(nak_ns, due_ns)):
                limited.add(begin)
                break
            if min(nak_ns, until_ns) > due_ns:
                number = counts.get(begin, 0) + 1
                text = f"NAK {number} for position {begin} was not sent until {due_ns - before_ns}"
                return np.array(waits), f"{text} ns after {_what(number)}, while the gap remained"
            if nak_ns == _UNKNOWN_NS or counts.get(begin, 0) >= NAKS_MAX or begin in limited:
                break
            counts[begin] = counts.get(begin, 0) + 1
            doublings = min(counts[begin] // NAKS_PER_BACKOFF, BACKOFFS_MAX)
            before_ns, delay_ns = nak_ns, delays.retry_ns << doublings
    return np.array(waits, dtype=np.int64), ""


def _what(number: int) -> str:
    return "the gap could be found" if number == 1 else "the previous one or a change of the gap"


def _all_gaps(
    wire: Wire, start: int, delays: _Delays, pauses: Pauses
) -> tuple[NDArray[np.int64], str]:
    """Return the delay of the first NAK of each gap, and what is wrong, if each gap is requested.

    A gap here is a run of frames that were missing when the same packet showed them to be.
    """
    order = np.lexsort((wire.arrived.frames["time_ns"], wire.arrived.starts))
    places, first = np.unique(wire.arrived.starts[order], return_index=True)
    came_ns = wire.arrived.frames["time_ns"][order][first].astype(np.int64)
    tops_ns, tops = highest_by(wire)
    seen_ns = tops_ns[np.searchsorted(tops, places, side="right")]
    is_lost = (seen_ns < came_ns) & (places >= start)
    is_next = np.append(False, is_lost[:-1] & (np.diff(seen_ns) == 0))
    naks = wire.naks(wire.feedback_sent)
    starts, ends = wire.nak_ranges(naks)
    times_ns = naks["time_ns"].astype(np.int64)
    last_ns, waits = _last_ns(wire), []
    for at in np.flatnonzero(is_lost).tolist():
        place, since_ns = int(places[at]), int(seen_ns[at])
        own = times_ns[(starts <= place) & (place < ends)]
        wait_ns = int(own[0]) - since_ns if len(own) else _UNKNOWN_NS
        if not is_next[at]:
            waits.append(wait_ns)
        if wait_ns + SLACK_NS < delays.least_ns:
            text = f"the NAK for position {place} was sent {wait_ns} ns after its gap could be "
            return np.array(waits), f"{text}found, expected a delay of {delays.least_ns} ns"
        due_ns = int(pauses.due_ns(np.array([since_ns]), delays.most_ns + SLACK_NS)[0])
        if min(int(came_ns[at]), last_ns) > due_ns and since_ns + wait_ns > due_ns:
            text = f"position {place} was not requested until {due_ns - since_ns} ns after its gap"
            return np.array(waits), f"{text} could be found, while it was missing"
    lost = Lost(places[is_lost], came_ns[is_lost], times_ns, starts, ends)
    problem = late_retry(
        wire, lost, pauses,
        least_ns=0 if delays.is_random else delays.retry_ns,
        slack_ns=SLACK_NS + (GROUP_BACKOFF_NS if delays.is_random else 0),
        is_group=delays.is_random,
    )  # fmt: skip
    if not problem and not delays.is_random:
        problem = early_retry(wire, lost, least_ns=delays.retry_ns)
    return np.array(waits, dtype=np.int64), problem


def _too_early_for_a_group(waits: NDArray[np.int64]) -> str:
    """Return what is wrong if more delays are short than a truncated exponential distribution
    allows. That other receivers' NAKs end a gap makes short delays only rarer.
    """
    rate = math.log(GROUP_SIZE) + 1.0
    for share in SHARES:
        below_ns = GROUP_BACKOFF_NS / rate * math.log1p(share * math.expm1(rate))
        with_slack = min(1.0, (below_ns + SLACK_NS) / GROUP_BACKOFF_NS)
        expected = math.expm1(rate * with_slack) / math.expm1(rate)
        early = int((waits < below_ns).sum())
        most = interval(len(waits), expected, CONFIDENCE)[1]
        if early > most:
            return (
                f"{early} of {len(waits)} gaps were requested within {int(below_ns)} ns, expected "
                f"at most {most} with the random delays of a group"
            )
    return ""
