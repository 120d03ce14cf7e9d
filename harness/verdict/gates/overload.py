"""Gate on the machine: were the hosts quick enough for what time tells to be the subject's doing?

A broken gate here excuses what a slow host can cause, and nothing else: not bytes, and not cause
and effect. A run in which nothing was violated is none the worse for it. All figures are of the
traffic phase; before it, everything starts at once. That somebody left because he was not answered
takes more than a slow moment: a host that starved for as long as he waits, in whatever phase, or a
relay that stood still. So does a stream that stands still when all have their time again, see
standstill.py.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.pressure import UNKNOWN, Pressure
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, together
from windtunnel.harness.verdict.core.kind import OF_A_SLOW_HOST, OF_A_STARVED_HOST
from windtunnel.harness.verdict.core.outcome import Outcome

NAME = "host_was_not_overloaded"
PHASE = "traffic"

WAIT_NS_MAX = 90_000_000
"""Between two looks at a driver's thread. A wait is counted when it is over, so one as long as the
timing checks tolerate, which is 100 ms, less what an agent sleeps, lies between two looks."""
WAIT_SHARE_MAX = 0.5
"""Of STARVED_NS: a driver that waits longer than it may run or sleep is not at fault."""
GAP_NS_MAX = 50_000_000
"""Between two looks of the sampler, which are due every few ms: half of what the timing checks
tolerate, since the driver shares the processors with the sampler."""
LAG_NS_MAX = 5_000_000
"""99th percentile of the relay's own delay: as much as the pace of NAKs tolerates."""
STEAL_SHARE_MAX = 0.02
"""Of one processor's time, that the machine's own host gave to others."""
THROTTLED_SHARE_MAX = 0.01
"""Of the time: a quota takes its time in stretches of up to 100 ms."""
STARVED_NS = 5_000_000_000
"""Whose wait was above WAIT_SHARE_MAX of so long starved: half the patience of Aeron's clients."""
STARVED_GAP_NS = 1_000_000_000
"""Or had no turn at all for so long; no sound host makes anybody wait for a hundredth of it."""


def host_was_not_overloaded(evidence: Evidence) -> list[Finding]:
    """The hosts, the relay and the machine had the processor time that they needed."""
    found = together(evidence.manifest, evidence.case, evidence.ledger)
    if isinstance(found, Missing):
        return [_limited(could_not_look(NAME, found))]
    manifest, case, ledger = found
    if not manifest.phases:
        gap = Missing(evidence.name_of(evidence.folder.manifest), "tells of no phase")
        return [_limited(could_not_look(NAME, gap))]
    during = next((each for each in manifest.phases if each.name == PHASE), None)
    starts, ends = during or manifest.phases[0], during or manifest.phases[-1]
    findings = []
    for host in case.hosts:
        pressure = evidence.pressure(host.name)
        if isinstance(pressure, Missing):
            findings.append(_limited(could_not_look(NAME, pressure, host.name)))
            continue
        where = (evidence.name_of(evidence.folder.host(host.name).pressure),)
        rows = _during(pressure, starts.started_ns, ends.ended_ns)
        if len(rows.rows) < 2:
            gap = Missing(where[0], "tells of no stretch of that time")
            findings.append(_limited(could_not_look(NAME, gap, host.name)))
            continue
        # A wait is counted when it is over, and that may be behind the traffic.
        starved = list(_starved(_during(pressure, starts.started_ns, manifest.phases[-1].ended_ns)))
        offences = [*starved, *(_pressed(rows) if during else ())]
        finding = _finding(offences, _summary(rows), host.name, where)
        findings.append(replace(finding, excuses_kinds=OF_A_STARVED_HOST) if starved else finding)
    where = (evidence.name_of(evidence.folder.ledger),)
    findings.append(_relayed(ledger, where))
    findings.append(_stolen(evidence, manifest))
    return findings


def _relayed(ledger: Ledger, where: tuple[str, ...]) -> Finding:
    """Whether the relay handed on in time, on all links."""
    worst_ns, longest_ns = (
        max((link.lag_ns.get(name, 0) for link in ledger.links.values()), default=0)
        for name in ("p99", "max")
    )
    offences = []
    if worst_ns > LAG_NS_MAX:
        text = f"the relay took {worst_ns} ns for one datagram in a hundred, limit {LAG_NS_MAX}"
        offences.append(text)
    is_starved = longest_ns > STARVED_GAP_NS
    if is_starved:
        text = f"the relay starved: it took {longest_ns} ns for a datagram, limit {STARVED_GAP_NS}"
        offences.append(text)
    quick = f"the relay took at most {worst_ns} ns for 99 of 100 datagrams"
    finding = _finding(offences, quick, "relay", where)
    return replace(finding, excuses_kinds=OF_A_STARVED_HOST) if is_starved else finding


def _stolen(evidence: Evidence, manifest: Manifest) -> Finding:
    where = (evidence.name_of(evidence.folder.manifest),)
    ticks = int(manifest.host_facts.get("steal_ticks", 0))
    rate = int(manifest.host_facts.get("ticks_per_second", 0))
    lasted_ns = manifest.phases[-1].ended_ns - manifest.phases[0].started_ns
    share = ticks / rate / (lasted_ns / 1e9) if rate and lasted_ns > 0 else 0.0
    text = f"{share:.1%} of a processor's time went to other machines"
    offence = [f"{text}, limit {STEAL_SHARE_MAX:.0%}"] if share > STEAL_SHARE_MAX else []
    return _finding(offence, text, "machine", where)


def _finding(offences: list[str], summary: str, about: str, where: tuple[str, ...]) -> Finding:
    if offences:
        finding = Finding(NAME, Outcome.INCONCLUSIVE, "; ".join(offences), about, where)
        return _limited(replace(finding, advisory=True))
    return Finding(NAME, Outcome.PASS, summary, about, where)


def _limited(finding: Finding) -> Finding:
    """The finding as one that excuses what a slow host can cause, and nothing else."""
    return replace(finding, excuses_kinds=OF_A_SLOW_HOST)


def _during(pressure: Pressure, from_ns: int, until_ns: int) -> Pressure:
    """The rows of a stretch of time, with the one before it and the one behind it."""
    times_ns = pressure.column("time_ns")
    first = max(0, int(np.searchsorted(times_ns, from_ns)) - 1)
    last = int(np.searchsorted(times_ns, until_ns, side="right")) + 1
    return Pressure(pressure.interval_ns, pressure.rows[first:last])


def _shares(rows: Pressure, name: str) -> NDArray[np.float64]:
    """Growth of a column from row to row, as a share of the time between them."""
    spans = np.maximum(np.diff(rows.column("time_ns")), 1)
    shares: NDArray[np.float64] = np.diff(rows.column(name)) / spans
    return shares


def _longest_gap_ns(rows: Pressure) -> int:
    """The longest that the sampler did not look, behind the first row."""
    return int(rows.column("longest_gap_ns")[1:].max(initial=0))


def _stolen_between_looks_ns(rows: Pressure) -> int:
    """A processor that the host of a virtual machine takes away is no wait to its kernel."""
    stolen_ns = rows.column("stolen_ns")
    return 0 if UNKNOWN in stolen_ns else int(np.diff(stolen_ns).max(initial=0))


def _throttled_share(rows: Pressure) -> float:
    throttled = rows.column("throttled_ns")
    if UNKNOWN in (throttled[0], throttled[-1]):
        return 0.0
    span = max(1, int(rows.column("time_ns")[-1] - rows.column("time_ns")[0]))
    return int(throttled[-1] - throttled[0]) / span


def _pressed(rows: Pressure) -> Iterator[str]:
    """What shows that a host was pressed too hard."""
    waits_ns = np.diff(rows.column("wait_ns"))
    if waits_ns.max() > WAIT_NS_MAX:
        many = int((waits_ns > WAIT_NS_MAX).sum())
        yield (
            f"the driver waited {waits_ns.max()} ns for a processor between two looks, "
            f"limit {WAIT_NS_MAX}, in {many} of {len(waits_ns)}"
        )
    gap_ns = _longest_gap_ns(rows)
    if gap_ns > GAP_NS_MAX:
        yield (
            f"the sampler did not look for {gap_ns} ns, limit {GAP_NS_MAX}, "
            f"where {rows.interval_ns} are due"
        )
    stolen_ns = _stolen_between_looks_ns(rows)
    if stolen_ns > WAIT_NS_MAX:
        yield (
            f"the machine's own host gave {stolen_ns} ns of a processor to others between two "
            f"looks, limit {WAIT_NS_MAX}"
        )
    throttled = _throttled_share(rows)
    if throttled > THROTTLED_SHARE_MAX:
        yield f"a quota kept the driver still {throttled:.1%} of the time"


def short_of_time(rows: Pressure) -> NDArray[np.bool_]:
    """Before which looks, of all but the first, a host was pressed as hard as `_pressed` tells."""
    short: NDArray[np.bool_] = np.diff(rows.column("wait_ns")) > WAIT_NS_MAX
    short |= rows.column("longest_gap_ns")[1:] > GAP_NS_MAX
    short |= np.diff(rows.column("stolen_ns")) > WAIT_NS_MAX
    short |= _shares(rows, "throttled_ns") > THROTTLED_SHARE_MAX
    return short


def _starved(rows: Pressure) -> Iterator[str]:
    """What shows that a host did not have its time for longer than starting takes."""
    times_ns, waited_ns = rows.column("time_ns"), rows.column("wait_ns")
    ends = np.searchsorted(times_ns, times_ns + STARVED_NS)
    starts = np.flatnonzero(ends < len(times_ns))
    ends = ends[starts]
    shares = (waited_ns[ends] - waited_ns[starts]) / (times_ns[ends] - times_ns[starts])
    if shares.max(initial=0.0) > WAIT_SHARE_MAX:
        yield (
            f"the driver waited for a processor {shares.max():.0%} of "
            f"{STARVED_NS // 1_000_000_000} s, limit {WAIT_SHARE_MAX:.0%}"
        )
    gap_ns = _longest_gap_ns(rows)
    if gap_ns > STARVED_GAP_NS:
        yield f"the host starved: its sampler had no turn for {gap_ns} ns, limit {STARVED_GAP_NS}"


def _summary(rows: Pressure) -> str:
    waits = _shares(rows, "wait_ns")
    gap_ns = _longest_gap_ns(rows)
    return (
        f"the driver waited at most {waits.max():.0%} of the time for a processor, "
        f"the sampler at most {gap_ns} ns for its turn, of {rows.interval_ns}"
    )
