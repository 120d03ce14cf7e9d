"""Gate on impairments: they were configured as specified, and occurred at the specified rates.

    relay    its ledger counts each datagram lost, duplicated, corrupted or reordered
    netem    the kernel's options and counters agree with the relay's output and the capture

netem does not record its losses one by one. Its counters include every packet, even the few that do
not belong to a stream (such as ARP), so they may exceed the captures by that many. Delay and rate
are not checked here.
"""

import math
from dataclasses import dataclass, replace

from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.middlebox.ledger import LinkAccount
from windtunnel.harness.artifact.middlebox.netem import NetemLink
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
from windtunnel.harness.netem.readback import Applied, differences
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.resolved.link_change import COUNTS, LinkPeriod, periods
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    EvidenceMissing,
    Finding,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.statistics import chain_counts
from windtunnel.harness.verdict.statistics.binomial import interval, min_trials

NAME = "impairments_applied"
CONFIDENCE = 0.999
"""Confidence of the interval for each quantity: one correct run in a thousand falls outside it."""
BURSTS_MIN = 10
"""Minimum number of loss bursts that are needed to estimate the loss rate."""
UNRELATED_MAX = 32
"""Limit on the number of packets, such as ARP, that the lab itself sends per interface in a run."""


@dataclass(frozen=True)
class Count:
    """The number of datagrams that an impairment affected, and the expected range."""

    what: str
    trials: int
    hits: int
    least: int
    low: int
    high: int

    def finding(self, link: str, where: tuple[str, ...]) -> Finding:
        facts = {"hits": self.hits, "eligible": self.trials}
        specified = f"{self.what} for {self.trials} datagrams"
        if self.trials < self.least:
            text = f"{specified}: sample too small: at least {self.least} datagrams are needed"
            return Finding(
                NAME, Outcome.INCONCLUSIVE, text, link, where, excuses=False, facts=facts
            )
        text = f"{specified}: {self.hits} affected, expected {self.low} to {self.high}"
        if not self.low <= self.hits <= self.high:
            return Finding(NAME, Outcome.INCONCLUSIVE, text, link, where, facts=facts)
        return passed(NAME, text, link, evidence=where, facts=facts)


def impairments_applied(evidence: Evidence) -> list[Finding]:
    """Impairments were configured as specified, and occurred at statistically plausible rates."""
    case = present(evidence.case)
    if case.changes_links:
        return _changing(evidence, case)
    if not case.impairments:
        return [passed(NAME, "the scenario has no impairments")]
    findings = []
    for impairment in case.impairments:
        look = _by_netem if case.backend_of(impairment.link) == "netem" else _by_relay
        try:
            findings += look(evidence, case, impairment)
        except EvidenceMissing as error:
            findings.append(inconclusive(NAME, error.missing, impairment.link))
    return findings


def _changing(evidence: Evidence, case: Case) -> list[Finding]:
    """Compare each period between two changes of a link direction with its own impairments.

    The periods are as long as a program needs, so few packets are no reason to doubt a run.
    """
    ledger, changes = present(evidence.ledger, evidence.link_changes)
    where = tuple(
        evidence.name_of(each) for each in (evidence.folder.link_changes, evidence.folder.ledger)
    )
    findings = []
    for name in case.link_names:
        link = ledger.links.get(name)
        if link is None or link.impairments is None:
            text = "the relay's ledger has no counts of the link's impairments"
            findings.append(Finding(NAME, Outcome.HARNESS, text, name, where))
            continue
        for each in periods(case, changes, name, link.impairments):
            findings += _period(each, link, where)
    text = "the links had no impairments whose effects are counted"
    return findings or [passed(NAME, text, evidence=where)]


def _period(period: LinkPeriod, link: LinkAccount, where: tuple[str, ...]) -> list[Finding]:
    impairment, account = period.impairment, period.account
    if any(getattr(account, name) < 0 for name in COUNTS):
        text = "counts of the link's impairments decrease from one change to the next"
        return [Finding(NAME, Outcome.HARNESS, text, impairment.link, where)]
    counts = _counts(
        impairment, account.received, account.lost, account.duplicated, account.corrupted
    )
    if impairment.loss is not None and impairment.loss.model != "iid" and link.other_in:
        # Packets that are not counted, such as those of streams that are not observed, are in the
        # bursts, too.
        del counts[0]
    if impairment.reorder_ppb:
        counts.append(_reordered(impairment, link, account))
    return [replace(each, least=0).finding(impairment.link, where) for each in counts]


def _by_relay(evidence: Evidence, case: Case, impairment: ImpairmentCase) -> list[Finding]:
    ledger = present(evidence.ledger)
    where = (evidence.name_of(evidence.folder.ledger),)
    link = ledger.links.get(impairment.link)
    account = None if link is None else link.impairments
    if link is None or account is None:
        text = "the scenario has impairments, but the relay's ledger has no counts of them"
        return [Finding(NAME, Outcome.HARNESS, text, impairment.link, where)]
    counts = _counts(
        impairment, account.received, account.lost, account.duplicated, account.corrupted
    )
    if impairment.reorder_ppb:
        counts.append(_reordered(impairment, link, account))
    return _findings(case, counts, impairment, where)


def _reordered(impairment: ImpairmentCase, link: LinkAccount, account: ImpairmentAccount) -> Count:
    """Return how many packets the relay reordered, and the expected range.

    After a reordered packet, the next gap - 1 packets are not candidates. So exactly r of n packets
    are reordered when r of n - r * (gap - 1) independent trials succeed.
    """
    share, hits = impairment.reorder_ppb / BILLION, account.reordered
    idle = max(0, impairment.reorder_gap - 1)
    fewest = account.sent + link.send_failures
    # Unrelated packets may be reordered, too; the ledger counts those only approximately.
    others = link.other_in + max(0, link.datagrams_out - account.received)
    most = fewest + account.no_room + 2 * others
    low, _ = interval(max(0, fewest - (hits + 1) * idle), share, CONFIDENCE)
    _, high = interval(max(0, most - hits * idle), share, CONFIDENCE)
    # With few packets the interval includes 0, and then the count proves nothing.
    return Count(f"reorder {share:.4%}", max(0, fewest - hits * idle), hits, 0, low, high)


def _by_netem(evidence: Evidence, case: Case, impairment: ImpairmentCase) -> list[Finding]:
    link, name = impairment.link, NAME
    near_host, far_host = case.directions[case.link_names.index(link)]
    ledger, netem, far = present(evidence.ledger, evidence.netem, evidence.capture(far_host))
    where = tuple(
        evidence.name_of(path)
        for path in (
            evidence.folder.netem,
            evidence.folder.ledger,
            evidence.folder.capture(far_host),
        )
    )
    account, applied = ledger.links.get(link), netem.links.get(link)
    if account is None or applied is None:
        text = f"ledger.json or netem.json has no entry for link {link}"
        return [Finding(name, Outcome.HARNESS, text, link, where)]
    wrong = differences(impairment, Applied(applied.options, 0, 0, 0, 0))
    if wrong:
        return [Finding(name, Outcome.HARNESS, f"tc reports: {wrong[0]}", link, where)]
    sender = case.address(near_host)
    arrived = _datagrams(far, sender)
    text = _disagreement(impairment, account, applied, arrived)
    if text:
        return [Finding(name, Outcome.INCONCLUSIVE, text, link, where)]
    sent = account.datagrams_out
    doubled = max(0, arrived - sent + applied.dropped) if impairment.duplicate_ppb else 0
    damaged = max(0, sent + doubled - applied.dropped - arrived)
    counts = _counts(impairment, sent, applied.dropped, doubled, damaged)
    return _findings(case, counts, impairment, where)


def _datagrams(capture: Capture, sender: str) -> int:
    """Return how many of a sender's datagrams arrived uncorrupted."""
    rows = capture.frames[sent_by(capture.frames, sender)]
    if len(rows) == 0:
        return 0
    return 1 + int((rows["datagram"][1:] != rows["datagram"][:-1]).sum())


def _disagreement(
    impairment: ImpairmentCase, account: LinkAccount, applied: NetemLink, arrived: int
) -> str:
    """Describe how netem's counters and the captures disagree, or return ""."""
    if applied.waiting:
        return f"{applied.waiting} packets were still queued in netem at the end"
    sent, others = account.datagrams_out, account.other_out + UNRELATED_MAX
    passing = f"{sent} datagrams entered netem, {arrived} arrived"
    counts = f"but netem counted {applied.packets} sent and {applied.dropped} dropped"
    strangers = applied.packets - arrived
    if not impairment.corrupt_ppb and not 0 <= strangers <= others:
        return f"{passing}, {counts}"
    if impairment.duplicate_ppb or impairment.corrupt_ppb:
        return "" if applied.packets + applied.dropped >= sent else f"{passing}, {counts}"
    vanished = sent - arrived
    if not 0 <= applied.dropped - vanished <= others:
        return f"{passing}, {counts}"
    return ""


def _findings(
    case: Case, counts: list[Count], impairment: ImpairmentCase, where: tuple[str, ...]
) -> list[Finding]:
    if not counts:
        text = "configured as specified; the effects of these impairments are not counted"
        return [passed(NAME, text, impairment.link, evidence=where)]
    if not case.traffic:
        # Applications send as much as they want, so few packets are no reason to doubt a run.
        counts = [replace(each, least=0) for each in counts]
    return [count.finding(impairment.link, where) for count in counts]


def _counts(
    impairment: ImpairmentCase, received: int, lost: int, doubled: int, damaged: int
) -> list[Count]:
    """Return the counts of the impairments that a link direction has, the losses first.

    As in netem, a packet that is both lost and duplicated passes once, and counts as neither. The
    copy of a duplicated packet may be lost.
    """
    found = []
    loss, copied = impairment.loss, impairment.duplicate_ppb / BILLION
    lost_share = 0.0 if loss is None else loss.rate
    if loss is not None:
        trials = round(received * (1 - copied * lost_share))
        low, high = loss_interval(loss, trials)
        if impairment.queue_packets:
            # A full queue drops additional packets, and netem counts both kinds together.
            high = received
        name = f"{loss.model} loss {loss.rate:.4%}"
        found.append(Count(name, received, lost, min_loss_trials(loss), low, high))
    for what, asked_ppb, share, trials, hits in (
        ("duplicate", impairment.duplicate_ppb, copied * (1 - lost_share), received, doubled),
        (
            *("corrupt", impairment.corrupt_ppb, impairment.corrupt_ppb / BILLION),
            *(received + doubled - lost, damaged),
        ),
    ):
        if asked_ppb:
            low, high = interval(trials, share, CONFIDENCE)
            least = min_trials(share, CONFIDENCE)
            found.append(Count(f"{what} {asked_ppb / BILLION:.4%}", trials, hits, least, low, high))
    return found


def loss_interval(loss: LossCase, trials: int) -> tuple[int, int]:
    """Return the plausible range of losses in a given number of packets."""
    return chain_counts.interval(loss.chain, trials, CONFIDENCE)


def min_loss_trials(loss: LossCase) -> int:
    """Return the minimum number of packets needed to estimate the loss rate."""
    if loss.model == "iid":
        return min_trials(loss.rate, CONFIDENCE)
    return math.ceil(BURSTS_MIN * loss.burst_length / loss.rate)
