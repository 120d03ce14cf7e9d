"""Gate on the machine: whether the hosts had enough processor time for timing checks to be valid.

If this gate fails, it excuses only what a slow host can cause: neither wrong bytes nor violations
of cause and effect. A run without violations still passes. All figures cover only the traffic
phase, since many processes start at once before it. A process timeout is excused only if a host was
starved for as long as that timeout, in any phase, or if the relay stalled. A stream that makes no
progress although all hosts have processor time is not excused: see `stall_detector`.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.pressure import UNKNOWN, Pressure
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    EvidenceMissing,
    Finding,
    Missing,
    inconclusive,
    present,
)
from windtunnel.harness.verdict.core.kind import SLOW_HOST_KINDS, STARVED_HOST_KINDS
from windtunnel.harness.verdict.core.outcome import Outcome

NAME = "host_was_not_overloaded"
PHASE = "traffic"

WAIT_NS_MAX = 90_000_000
"""Limit on a driver thread's wait for a processor between two samples. A wait is counted when it
ends, so a wait as long as the timing checks tolerate (100 ms, less the time that an agent sleeps)
lies between two samples."""
WAIT_SHARE_MAX = 0.5
"""Limit on the share of STARVED_NS that a driver waits for a processor. A driver that waits longer
is not at fault."""
GAP_NS_MAX = 50_000_000
"""Limit on the time between two samples, which are due every few ms. It is half of what the timing
checks tolerate, since the driver shares the processors with the sampler."""
LAG_NS_MAX = 5_000_000
"""Limit on the 99th percentile of the relay's own delay. The check of NAK intervals tolerates as
much."""
STEAL_SHARE_MAX = 0.02
"""Limit on steal time, which the hypervisor gave to other machines, as a share of one processor's
time."""
THROTTLED_SHARE_MAX = 0.01
"""Limit on the share of time in which a CPU quota throttled the driver, in stretches of up to 100
ms."""
STARVED_NS = 5_000_000_000
"""A host is starved if its driver waited for more than WAIT_SHARE_MAX of this time, which is half
the timeout of Aeron's clients."""
STARVED_GAP_NS = 1_000_000_000
"""A host is also starved if its sampler did not run for longer than this. On a healthy host, no
process waits for even a hundredth of this time."""


def host_was_not_overloaded(evidence: Evidence) -> list[Finding]:
    """The hosts, the relay and the machine had the processor time that they needed."""
    try:
        manifest, case, ledger = present(evidence.manifest, evidence.case, evidence.ledger)
    except EvidenceMissing as error:
        return [_limit_excuse(inconclusive(NAME, error.missing))]
    if not manifest.phases:
        gap = Missing(evidence.name_of(evidence.folder.manifest), "lists no phase")
        return [_limit_excuse(inconclusive(NAME, gap))]
    during = next((each for each in manifest.phases if each.name == PHASE), None)
    starts, ends = during or manifest.phases[0], during or manifest.phases[-1]
    findings = []
    for host in case.hosts:
        pressure = evidence.pressure(host.name)
        if isinstance(pressure, Missing):
            findings.append(_limit_excuse(inconclusive(NAME, pressure, host.name)))
            continue
        where = (evidence.name_of(evidence.folder.host(host.name).pressure),)
        rows = _during(pressure, starts.started_ns, ends.ended_ns)
        if len(rows.rows) < 2:
            gap = Missing(where[0], "has fewer than two samples of the traffic phase")
            findings.append(_limit_excuse(inconclusive(NAME, gap, host.name)))
            continue
        # A wait is counted when it ends, which may be after the traffic.
        starved = list(
            _starvations(_during(pressure, starts.started_ns, manifest.phases[-1].ended_ns))
        )
        problems = [*starved, *(_overloads(rows) if during else ())]
        finding = _finding(problems, _summary(rows), host.name, where)
        findings.append(replace(finding, excuses_kinds=STARVED_HOST_KINDS) if starved else finding)
    where = (evidence.name_of(evidence.folder.ledger),)
    findings.append(_relay_lag(ledger, where))
    findings.append(_steal_time(evidence, manifest))
    return findings


def _relay_lag(ledger: Ledger, where: tuple[str, ...]) -> Finding:
    """Check that the relay forwarded datagrams in time on all links."""
    worst_ns, longest_ns = (
        max((link.lag_ns.get(name, 0) for link in ledger.links.values()), default=0)
        for name in ("p99", "max")
    )
    problems = []
    if worst_ns > LAG_NS_MAX:
        text = f"the relay's p99 forwarding delay was {duration(worst_ns)} "
        text += f"(limit {duration(LAG_NS_MAX)})"
        problems.append(text)
    is_starved = longest_ns > STARVED_GAP_NS
    if is_starved:
        text = f"the relay stalled: its maximum forwarding delay was {duration(longest_ns)} "
        text += f"(limit {duration(STARVED_GAP_NS)})"
        problems.append(text)
    summary = f"the relay's p99 forwarding delay was {duration(worst_ns)}"
    finding = _finding(problems, summary, "relay", where)
    return replace(finding, excuses_kinds=STARVED_HOST_KINDS) if is_starved else finding


def _steal_time(evidence: Evidence, manifest: Manifest) -> Finding:
    where = (evidence.name_of(evidence.folder.manifest),)
    ticks = int(manifest.host_facts.get("steal_ticks", 0))
    rate = int(manifest.host_facts.get("ticks_per_second", 0))
    lasted_ns = manifest.phases[-1].ended_ns - manifest.phases[0].started_ns
    share = ticks / rate / (lasted_ns / 1e9) if rate and lasted_ns > 0 else 0.0
    text = f"steal time was {share:.1%} of one processor"
    problem = [f"{text} (limit {STEAL_SHARE_MAX:.0%})"] if share > STEAL_SHARE_MAX else []
    return _finding(problem, text, "machine", where)


def _finding(problems: list[str], summary: str, about: str, where: tuple[str, ...]) -> Finding:
    if problems:
        finding = Finding(NAME, Outcome.INCONCLUSIVE, "; ".join(problems), about, where)
        return _limit_excuse(replace(finding, advisory=True))
    return Finding(NAME, Outcome.PASS, summary, about, where)


def _limit_excuse(finding: Finding) -> Finding:
    """Return a copy of a finding that excuses only those violations that a slow host can cause."""
    return replace(finding, excuses_kinds=SLOW_HOST_KINDS)


def _during(pressure: Pressure, from_ns: int, until_ns: int) -> Pressure:
    """Return the samples of a time range, with one sample before it and one after it."""
    times_ns = pressure.column("time_ns")
    first = max(0, int(np.searchsorted(times_ns, from_ns)) - 1)
    last = int(np.searchsorted(times_ns, until_ns, side="right")) + 1
    return Pressure(pressure.interval_ns, pressure.rows[first:last])


def _shares(rows: Pressure, name: str) -> NDArray[np.float64]:
    """Return how much a column grew from sample to sample, as a share of the elapsed time."""
    spans = np.maximum(np.diff(rows.column("time_ns")), 1)
    shares: NDArray[np.float64] = np.diff(rows.column(name)) / spans
    return shares


def _longest_gap_ns(rows: Pressure) -> int:
    """Return the longest time for which the sampler did not run, ignoring the first row."""
    return int(rows.column("longest_gap_ns")[1:].max(initial=0))


def _stolen_between_looks_ns(rows: Pressure) -> int:
    """Return the largest steal time between two consecutive samples. Guest systems do not count
    steal time as waiting time.
    """
    stolen_ns = rows.column("stolen_ns")
    return 0 if UNKNOWN in stolen_ns else int(np.diff(stolen_ns).max(initial=0))


def _throttled_share(rows: Pressure) -> float:
    throttled = rows.column("throttled_ns")
    if UNKNOWN in (throttled[0], throttled[-1]):
        return 0.0
    span = max(1, int(rows.column("time_ns")[-1] - rows.column("time_ns")[0]))
    return int(throttled[-1] - throttled[0]) / span


def _overloads(rows: Pressure) -> Iterator[str]:
    """Yield a description of each sign that the host was overloaded."""
    waits_ns = np.diff(rows.column("wait_ns"))
    if waits_ns.max() > WAIT_NS_MAX:
        many = int((waits_ns > WAIT_NS_MAX).sum())
        yield (
            f"the driver waited {duration(int(waits_ns.max()))} for a processor between two "
            f"samples (limit {duration(WAIT_NS_MAX)}, exceeded in {many} of {len(waits_ns)} "
            "intervals)"
        )
    gap_ns = _longest_gap_ns(rows)
    if gap_ns > GAP_NS_MAX:
        yield (
            f"the sampler did not run for {duration(gap_ns)} (limit {duration(GAP_NS_MAX)}, "
            f"sampling interval {duration(rows.interval_ns)})"
        )
    stolen_ns = _stolen_between_looks_ns(rows)
    if stolen_ns > WAIT_NS_MAX:
        yield (
            f"one processor's steal time was {duration(stolen_ns)} between two samples "
            f"(limit {duration(WAIT_NS_MAX)})"
        )
    throttled = _throttled_share(rows)
    if throttled > THROTTLED_SHARE_MAX:
        yield (
            f"a CPU quota throttled the driver for {throttled:.1%} of the time "
            f"(limit {THROTTLED_SHARE_MAX:.0%})"
        )


def overloaded_intervals(rows: Pressure) -> NDArray[np.bool_]:
    """Return a mask of the sampling intervals in which a host was overloaded."""
    short: NDArray[np.bool_] = np.diff(rows.column("wait_ns")) > WAIT_NS_MAX
    short |= rows.column("longest_gap_ns")[1:] > GAP_NS_MAX
    short |= np.diff(rows.column("stolen_ns")) > WAIT_NS_MAX
    short |= _shares(rows, "throttled_ns") > THROTTLED_SHARE_MAX
    return short


def _starvations(rows: Pressure) -> Iterator[str]:
    """Yield a description of each sign that the host was starved of processor time."""
    times_ns, waited_ns = rows.column("time_ns"), rows.column("wait_ns")
    ends = np.searchsorted(times_ns, times_ns + STARVED_NS)
    starts = np.flatnonzero(ends < len(times_ns))
    ends = ends[starts]
    shares = (waited_ns[ends] - waited_ns[starts]) / (times_ns[ends] - times_ns[starts])
    if shares.max(initial=0.0) > WAIT_SHARE_MAX:
        yield (
            f"the driver waited for a processor for {shares.max():.0%} of "
            f"{STARVED_NS // 1_000_000_000} s (limit {WAIT_SHARE_MAX:.0%})"
        )
    gap_ns = _longest_gap_ns(rows)
    if gap_ns > STARVED_GAP_NS:
        yield (
            f"the host was starved: its sampler did not run for {duration(gap_ns)} "
            f"(limit {duration(STARVED_GAP_NS)})"
        )


def _summary(rows: Pressure) -> str:
    waits = _shares(rows, "wait_ns")
    gap_ns = _longest_gap_ns(rows)
    return (
        f"the driver waited for a processor for at most {waits.max():.0%} of the time; "
        f"the longest sampling interval was {duration(gap_ns)}, "
        f"expected {duration(rows.interval_ns)}"
    )
