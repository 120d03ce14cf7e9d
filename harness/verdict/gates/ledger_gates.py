"""Gates on the middlebox: every datagram is accounted for, and the specified faults happened.

sender's capture == ledger in,   in + added - dropped == out,   ledger out == receiver's capture
"""

import math
from collections.abc import Iterator

import numpy as np

from windtunnel.harness.artifact.middlebox.decision import ACTIONS
from windtunnel.harness.artifact.middlebox.frame_class import CODES, NAMES
from windtunnel.harness.artifact.middlebox.ledger import Ledger, LinkAccount, RuleAccount
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.run.agreement import agreement
from windtunnel.harness.dissect.capture.pcap import Capture
from windtunnel.harness.dissect.frames.route import between
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.statistics import chain_counts
from windtunnel.harness.verdict.statistics.binomial import min_trials

CONFIDENCE = 0.999
"""Confidence of the interval for each rule: one correct run in a thousand falls outside it."""


def ledger_balanced(evidence: Evidence) -> list[Finding]:
    """The middlebox's ledger and both captures account for every datagram and every frame."""
    name = "ledger_balanced"
    case, ledger = present(evidence.case, evidence.ledger)
    return [
        finding_of(name, link, _balance, evidence, case, ledger, link, *ends)
        for link, ends in zip(case.link_names, case.directions, strict=True)
    ]


def _balance(
    evidence: Evidence, case: Case, ledger: Ledger, link: str, sender: str, receiver: str
) -> Finding:
    name = "ledger_balanced"
    ledger_file = evidence.name_of(evidence.folder.ledger)
    account = ledger.links.get(link)
    if account is None:
        return inconclusive(name, Missing(ledger_file, f"has no entry for {link}"), link)
    near, far = present(evidence.capture(sender), evidence.capture(receiver))
    for text in _ledger_errors(account):
        return Finding(name, Outcome.HARNESS, text, link, (ledger_file,))
    way = case.address(sender), case.address(receiver)
    received = {kind: frames.received for kind, frames in account.frames.items()}
    sides = [(near, sender, "in", account.datagrams_in, received)]
    if not (case.backend_of(link) == "netem" and case.impairments_of(link)):
        # The gate on impairments compares what netem drops after the relay.
        sides.append((far, receiver, "out", *_sent(account)))
    for capture, host, turn, datagrams, frames in sides:
        where = (ledger_file, evidence.name_of(evidence.folder.capture(host)))
        for what, booked, seen in _differences(capture, way, datagrams, frames):
            text = f"{what} {turn}: the ledger has {booked}, but the capture at {host} has {seen}"
            return Finding(name, Outcome.INCONCLUSIVE, text, link, where)
    impairments = account.impairments
    lost = impairments.lost + impairments.overflowed if impairments else 0
    then = f", of which impairments lost {lost}" if lost else ""
    text = (
        f"{account.datagrams_in} datagrams in, {account.datagrams_added} added, "
        f"{account.datagrams_dropped} dropped, {account.datagrams_out} out{then}: "
        "all accounted for"
    )
    return passed(name, text, link, evidence=(ledger_file,))


def _sent(account: LinkAccount) -> tuple[int, dict[str, int]]:
    """Return the numbers of datagrams and frames that the receiver's capture must contain according
    to the middlebox's ledger.
    """
    sent = {kind: frames.sent for kind, frames in account.frames.items()}
    impaired = account.impairments
    if impaired is None:
        return account.datagrams_out, sent
    return impaired.whole, {
        kind: impaired.frames_whole(kind, count) for kind, count in sent.items()
    }


def _ledger_errors(account: LinkAccount) -> Iterator[str]:
    """Yield a description of each inconsistency within the ledger."""
    counts = [
        (account.kernel_drops, "packets dropped by the kernel before the relay read them"),
        (account.send_failures, "packets that the relay could not send"),
        (account.datagrams_held_at_end, "datagrams still held at the end"),
        (account.unaccounted, "datagrams unaccounted for"),
    ]
    impaired = account.impairments
    if impaired is not None:
        counts += [
            (impaired.waiting_at_end, "datagrams still queued for impairment at the end"),
            (impaired.no_room, "datagrams dropped because the relay's delay queue was full"),
            (impaired.unaccounted, "datagrams unaccounted for in the impairments"),
            (
                impaired.received - account.datagrams_out,
                "more datagrams entered the impairments than left the fault rules",
            ),
        ]
    for count, what in counts:
        if count:
            yield f"{count} {what}"
    for kind, frames in sorted(account.frames.items()):
        if kind not in CODES:
            yield f"unknown frame class {kind} in the ledger"
        if frames.unaccounted:
            yield f"{frames.unaccounted} {kind} frames unaccounted for"


def _differences(
    capture: Capture, way: tuple[str, str], datagrams: int, frames: dict[str, int]
) -> Iterator[tuple[str, int, int]]:
    """Yield mismatches between ledger and capture as (name, ledger count, capture count)."""
    rows = capture.frames[between(capture.frames, *way)]
    seen_datagrams = len(np.unique(rows["datagram"]))
    if seen_datagrams != datagrams:
        yield "datagrams", datagrams, seen_datagrams
    kinds, counts = np.unique(rows["frame_type"], return_counts=True)
    seen = {NAMES[int(kind)]: int(count) for kind, count in zip(kinds, counts, strict=True)}
    for kind in sorted({*seen, *frames}):
        if seen.get(kind, 0) != frames.get(kind, 0):
            yield f"{kind} frames", frames.get(kind, 0), seen.get(kind, 0)


def faults_happened(evidence: Evidence) -> list[Finding]:
    """Each fault rule was applied at its specified rate, within statistical bounds.

    In a replay, every decision must come from the original run, and at least one must be repeated.
    """
    name = "faults_happened"
    case, ledger, decisions = present(evidence.case, evidence.ledger, evidence.decisions)
    if len(decisions) and int(decisions["rule"].max()) >= len(case.faults):
        where = evidence.name_of(evidence.folder.decisions)
        return [
            inconclusive(name, Missing(where, "refers to a rule that is not in case.json", True))
        ]
    if case.replays:
        return [_decisions_repeated(evidence, case, ledger, decisions)]
    if not case.faults:
        return [passed(name, "the scenario has no fault rules")]
    return [
        _rule_applied(evidence, case, index, fault, ledger, decisions)
        for index, fault in enumerate(case.faults)
    ]


def _decisions_repeated(
    evidence: Evidence, case: Case, ledger: Ledger, decisions: Records
) -> Finding:
    name = "faults_happened"
    where = tuple(
        evidence.name_of(each) for each in (evidence.folder.replayed, evidence.folder.decisions)
    )
    found = agreement(case.replays, present(evidence.replayed), decisions, case.link_names)
    facts = {"hits": found.repeated, "eligible": found.ordered}
    applied = sum(each.selected for each in ledger.rules.values())
    if applied != len(decisions):
        text = f"the ledger counts {applied} decisions, but the decision log has {len(decisions)}"
        return Finding(name, Outcome.HARNESS, text, "", where, facts=facts)
    if found.added:
        text = f"{found.added} decisions are not in the replayed decision log"
        return Finding(name, Outcome.HARNESS, text, "", where, facts=facts)
    if found.ordered and not found.repeated:
        return Finding(name, Outcome.INCONCLUSIVE, found.text, "", where, facts=facts)
    return passed(name, found.text, evidence=where, facts=facts)


def _rule_applied(
    evidence: Evidence,
    case: Case,
    index: int,
    fault: FaultCase,
    ledger: Ledger,
    decisions: Records,
) -> Finding:
    name = "faults_happened"
    where = tuple(
        evidence.name_of(each) for each in (evidence.folder.decisions, evidence.folder.ledger)
    )
    hits = int((decisions["rule"] == index).sum())
    account = ledger.rules.get(fault.id)
    eligible = (
        _eligible(case, index, fault, ledger, decisions) if account is None else account.eligible
    )
    facts = {"hits": hits, "eligible": eligible}
    if account is not None:
        for text in _log_mismatches(case, index, fault, ledger, decisions, account):
            return Finding(name, Outcome.HARNESS, text, fault.id, where, facts=facts)
    wrong = decisions[(decisions["rule"] == index)]["action"]
    codes = {code for code, word in ACTIONS.items() if word == fault.action}
    if len(wrong) and set(np.unique(wrong).tolist()) != codes:
        text = f"rule {fault.id}: expected only {fault.action} decisions, found other decisions"
        return Finding(name, Outcome.HARNESS, text, fault.id, where, facts=facts)
    # Matches in bursts carry less information: their frames count as fewer independent ones. One
    # draw of a shared rule decides about a frame on all links.
    copies = fault.copies_of_draws
    least = math.ceil(min_trials(fault.share, CONFIDENCE) * fault.chain.inflation) * copies
    low, high = (
        copies * count
        for count in chain_counts.interval(fault.chain, eligible // copies, CONFIDENCE)
    )
    specified = f"{fault.action} for {fault.share:.4%} of {eligible} frames"
    if eligible < least:
        text = f"{specified}: sample too small: at least {least} frames are needed"
        return Finding(
            name, Outcome.INCONCLUSIVE, text, fault.id, where, excuses=False, facts=facts
        )
    if not low <= hits <= high:
        text = f"{specified}: {hits} frames matched, expected {low} to {high}"
        return Finding(name, Outcome.INCONCLUSIVE, text, fault.id, where, facts=facts)
    text = f"{specified}: {hits} frames matched, expected {low} to {high}"
    return passed(name, text, fault.id, evidence=where, facts=facts)


def _log_mismatches(
    case: Case,
    index: int,
    fault: FaultCase,
    ledger: Ledger,
    decisions: Records,
    account: RuleAccount,
) -> Iterator[str]:
    """Yield each mismatch between the ledger's counts for a fault rule and the frames in the
    decision log and on the rule's links.
    """
    hits = int((decisions["rule"] == index).sum())
    if account.selected != hits:
        yield (
            f"rule {fault.id}: the ledger counts {account.selected} matching frames, "
            f"but the decision log has {hits}"
        )
    if fault.is_plain:
        counted = _eligible(case, index, fault, ledger, decisions)
        if counted != account.eligible:
            yield f"rule {fault.id}: {account.eligible} frames were examined, expected {counted}"


def _eligible(case: Case, index: int, fault: FaultCase, ledger: Ledger, decisions: Records) -> int:
    """Return how many frames a rule must have examined: all of its types, and of the scenario's
    streams, that no earlier rule matched.
    """
    count = 0
    earlier = decisions[decisions["rule"] < index]
    for link in fault.links:
        account = ledger.links.get(link)
        if account is None:
            continue
        on_link = earlier[earlier["link"] == case.link_names.index(link)]
        for kind in fault.frame_types:
            frames = account.frames.get(kind)
            count += frames.received - frames.other_streams if frames else 0
            count -= int((on_link["frame_type"] == CODES[kind]).sum())
    return count
