"""Gates on the weather: it was set as asked, and it befell the packets as often as was asked for.

    relay    its ledger counts each datagram that was lost, sent twice, damaged or sent at once
    netem    the kernel's own options and counts, beside what the relay sent and b captured

Nothing tells netem's losses one by one. Its counts take every packet, also the few that are not of
a stream (ARP), so they agree with the captures up to these. How late packets were, and how fast
they came, is compared with nothing here.
"""

import math
from dataclasses import dataclass

from windtunnel.harness.artifact.middlebox.impairment_account import WeatherAccount
from windtunnel.harness.artifact.middlebox.ledger import LinkAccount
from windtunnel.harness.artifact.middlebox.netem import NetemLink
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
from windtunnel.harness.netem.readback import Applied, differences
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import LossCase, WeatherCase
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, passed
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.statistics import chain_counts
from windtunnel.harness.verdict.statistics.binomial import interval, least_trials

NAME = "weather_applied"
CONFIDENCE = 0.999
"""One sound run in a thousand strays further, for each thing that is counted."""
BURSTS_MIN = 10
"""Fewer bursts say nothing about their share."""
STRAYS_MAX = 32
"""Packets of the lab itself, such as ARP, that a run sends over one interface."""


@dataclass(frozen=True)
class Count:
    """How often one thing befell how many datagrams, and how often it should."""

    what: str
    trials: int
    hits: int
    least: int
    low: int
    high: int

    def finding(self, link: str, where: tuple[str, ...]) -> Finding:
        facts = {"hits": self.hits, "eligible": self.trials}
        asked = f"{self.what} of {self.trials} datagrams"
        if self.trials < self.least:
            text = f"{asked}: too few to tell, it takes {self.least}"
            return Finding(
                NAME, Outcome.INCONCLUSIVE, text, link, where, excuses=False, facts=facts
            )
        text = f"{asked}: {self.hits} were, chance allows {self.low} to {self.high}"
        if not self.low <= self.hits <= self.high:
            return Finding(NAME, Outcome.INCONCLUSIVE, text, link, where, facts=facts)
        return passed(NAME, text, link, evidence=where, facts=facts)


def weather_applied(evidence: Evidence) -> list[Finding]:
    """The weather was set as asked, and befell as many datagrams as chance allows."""
    case = evidence.case
    if isinstance(case, Missing):
        return [could_not_look(NAME, case)]
    if not case.weather:
        return [passed(NAME, "the case orders no weather")]
    findings = []
    for weather in case.weather:
        look = _by_netem if case.backend_of(weather.link) == "netem" else _by_relay
        findings += look(evidence, case, weather)
    return findings


def _by_relay(evidence: Evidence, case: Case, weather: WeatherCase) -> list[Finding]:
    ledger = evidence.ledger
    if isinstance(ledger, Missing):
        return [could_not_look(NAME, ledger, weather.link)]
    where = (evidence.name_of(evidence.folder.ledger),)
    link = ledger.links.get(weather.link)
    account = None if link is None else link.weather
    if link is None or account is None:
        text = "the case orders weather, and the relay's ledger knows of none"
        return [Finding(NAME, Outcome.HARNESS, text, weather.link, where)]
    counts = _counts(weather, account.received, account.lost, account.duplicated, account.corrupted)
    if weather.reorder_ppb:
        counts.append(_reordered(weather, link, account))
    return _told(counts, weather, where)


def _reordered(weather: WeatherCase, link: LinkAccount, account: WeatherAccount) -> Count:
    """How many of the relay's packets overtook others, where each may try but those within a gap.

    Of the packets behind one that overtook, gap - 1 do not try. So as many as r overtake among n
    just where r of n - r * (gap - 1) tries succeed, which is a matter of independent chances.
    """
    share, hits = weather.reorder_ppb / BILLION, account.reordered
    idle = max(0, weather.reorder_gap - 1)
    fewest = account.sent + link.send_failures
    # Packets of others overtake and are counted, too; how many came the ledger tells but roughly.
    others = link.other_in + max(0, link.datagrams_out - account.received)
    most = fewest + account.no_room + 2 * others
    low, _ = interval(max(0, fewest - (hits + 1) * idle), share, CONFIDENCE)
    _, high = interval(max(0, most - hits * idle), share, CONFIDENCE)
    # With few packets chance allows none at all, which is then no news.
    return Count(f"reorder {share:.4%}", max(0, fewest - hits * idle), hits, 0, low, high)


def _by_netem(evidence: Evidence, case: Case, weather: WeatherCase) -> list[Finding]:
    link, name = weather.link, NAME
    ledger, netem = evidence.ledger, evidence.netem
    near_host, far_host = case.directions[case.link_names.index(link)]
    far = evidence.capture(far_host)
    for part in (ledger, netem, far):
        if isinstance(part, Missing):
            return [could_not_look(name, part, link)]
    assert not isinstance(ledger, Missing)
    assert not isinstance(netem, Missing)
    assert not isinstance(far, Missing)
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
        text = f"there is no account of link {link}"
        return [Finding(name, Outcome.HARNESS, text, link, where)]
    wrong = differences(weather, Applied(applied.options, 0, 0, 0, 0))
    if wrong:
        return [Finding(name, Outcome.HARNESS, f"read back: {wrong[0]}", link, where)]
    sender = case.address(near_host)
    arrived = _datagrams(far, sender)
    text = _disagreement(weather, account, applied, arrived)
    if text:
        return [Finding(name, Outcome.INCONCLUSIVE, text, link, where)]
    sent = account.datagrams_out
    doubled = max(0, arrived - sent + applied.dropped) if weather.duplicate_ppb else 0
    damaged = max(0, sent + doubled - applied.dropped - arrived)
    return _told(_counts(weather, sent, applied.dropped, doubled, damaged), weather, where)


def _datagrams(capture: Capture, sender: str) -> int:
    """How many datagrams of a sender arrived whole."""
    rows = capture.frames[sent_by(capture.frames, sender)]
    if len(rows) == 0:
        return 0
    return 1 + int((rows["datagram"][1:] != rows["datagram"][:-1]).sum())


def _disagreement(
    weather: WeatherCase, account: LinkAccount, applied: NetemLink, arrived: int
) -> str:
    """What the kernel's counts and the captures say differently; empty if they agree."""
    if applied.waiting:
        return f"{applied.waiting} packets were still inside netem at the end"
    sent, others = account.datagrams_out, account.other_out + STRAYS_MAX
    passing = f"{sent} datagrams went into netem, {arrived} arrived"
    counts = f"it counts {applied.packets} sent and {applied.dropped} dropped"
    strangers = applied.packets - arrived
    if not weather.corrupt_ppb and not 0 <= strangers <= others:
        return f"{passing}, {counts}"
    if weather.duplicate_ppb or weather.corrupt_ppb:
        return "" if applied.packets + applied.dropped >= sent else f"{passing}, {counts}"
    vanished = sent - arrived
    if not 0 <= applied.dropped - vanished <= others:
        return f"{passing}, {counts}"
    return ""


def _told(counts: list[Count], weather: WeatherCase, where: tuple[str, ...]) -> list[Finding]:
    if not counts:
        text = "set as asked; nothing of it can be counted"
        return [passed(NAME, text, weather.link, evidence=where)]
    return [count.finding(weather.link, where) for count in counts]


def _counts(
    weather: WeatherCase, received: int, lost: int, doubled: int, damaged: int
) -> list[Count]:
    found = []
    if weather.loss is not None:
        low, high = loss_interval(weather.loss, received)
        if weather.queue_packets:
            # What a full queue loses comes on top, and netem does not tell the two apart.
            high = received
        found.append(
            Count(
                f"{weather.loss.model} loss {weather.loss.rate:.4%}",
                received,
                lost,
                loss_trials(weather.loss),
                low,
                high,
            )
        )
    for what, share_ppb, trials, hits in (
        ("duplicate", weather.duplicate_ppb, received, doubled),
        ("corrupt", weather.corrupt_ppb, received + doubled - lost, damaged),
    ):
        if share_ppb:
            share = share_ppb / BILLION
            low, high = interval(trials, share, CONFIDENCE)
            least = least_trials(share, CONFIDENCE)
            found.append(Count(f"{what} {share:.4%}", trials, hits, least, low, high))
    return found


def loss_interval(loss: LossCase, trials: int, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """The counts of losses among so many packets that chance allows."""
    return chain_counts.interval(loss.chain, trials, confidence)


def loss_trials(loss: LossCase) -> int:
    """How many packets it takes before their losses say anything about the share."""
    if loss.model == "iid":
        return least_trials(loss.rate, CONFIDENCE)
    return math.ceil(BURSTS_MIN * loss.burst_length / loss.rate)
