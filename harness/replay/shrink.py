"""Reduces a failed run to a minimal one that still violates the same check.

    streams     keep as few as possible
    length      halve the streams as often as possible
    rules       keep as few as possible, each with all its decisions
    decisions   keep as few as possible, by delta debugging
    length      halve again, because fewer positions matter now
    rules       replace the decisions by rules with positions, if a run with only these rules fails
    acts        replace late, corrupted and forged frames by lost ones

A decision is the middlebox's recorded action on one frame. A step is accepted only if the same
check is violated again. If the steps are interrupted, `best` is a candidate that has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from windtunnel.harness.artifact.records import Records
from windtunnel.harness.replay.document import parse, reduced, text_of
from windtunnel.harness.replay.fewest import fewest
from windtunnel.harness.replay.rules import Document, range_count, rules_of, simpler
from windtunnel.harness.replay.trial import Candidate
from windtunnel.harness.scenario.frame_expectation import NAME as EXPECT_FRAMES
from windtunnel.harness.scenario.loader import ScenarioError
from windtunnel.harness.scenario.resolved.link_case import LinkCase, directions
from windtunnel.harness.scenario.schema.model import Check, Scenario
from windtunnel.harness.scenario.validation.interruption_validation import ONCE

BYTES_MIN = 1 << 10
"""Minimum length of a stream in bytes. Shorter streams are no easier to analyze."""

Fails = Callable[[Candidate], bool]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Origin:
    """The failed run that is reduced, with the description and the header comment for the resulting
    scenario file.
    """

    document: Document
    """The plain values of the run's scenario file."""

    scenario: Scenario
    decisions: Records
    seed: int
    check: str
    fidelity: tuple[str, ...]
    about: str
    header: tuple[str, ...] = ()


@dataclass
class Shrinking:
    """The reduction of a failed run. `best` is the smallest candidate that has failed so far."""

    origin: Origin
    fails: Fails
    report: Report
    best: Candidate = field(init=False)
    rules: list[Document] | None = None
    """The best candidate's rules, if a run with only these rules has failed. Otherwise None."""

    _passed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        scenario = expecting(self.origin.scenario, self.origin.check)
        self.best = Candidate(scenario, self.origin.decisions)

    @property
    def is_sure(self) -> bool:
        return self.rules is not None

    def run(self) -> None:
        """Execute all reduction steps in sequence."""
        self._streams()
        self._length()
        self._rules()
        self._decisions()
        self._length()
        self._by_rules()
        self._acts()

    def text(self) -> str:
        """Return the best candidate so far, as the text of a scenario file."""
        return self._text(self.written_rules())

    def written_rules(self) -> list[Document]:
        """Return the fault rules in the best candidate's scenario file."""
        if self.rules is not None:
            return self.rules
        acts = [fault["act"] for fault in self.origin.document.get("faults", [])]
        links = self.origin.scenario.network.all_links
        found = directions([LinkCase(between=each.between) for each in links])
        assert self.best.decisions is not None
        return rules_of(self.best.decisions, acts, found)

    def _text(self, rules: Sequence[Document]) -> str:
        origin = self.origin
        document = reduced(
            origin.document,
            self.best.scenario,
            name=f"shrunk/{origin.scenario.name.rpartition('/')[2]}",
            about=origin.about,
            seed=origin.seed,
            fidelity=origin.fidelity,
            faults=rules,
        )
        return text_of(document, origin.header)

    def _try(self, candidate: Candidate) -> bool:
        """Run a candidate scenario. If it fails, it becomes the best candidate. Returns whether it
        failed.

        A candidate that has passed is not run again.
        """
        lengths = [(each.id, each.content.total_bytes) for each in candidate.scenario.traffic]
        key = hash((tuple(lengths), self._bytes(candidate)))
        if key in self._passed or not self.fails(candidate):
            self._passed.add(key)
            return False
        self.best = candidate
        return True

    @staticmethod
    def _bytes(candidate: Candidate) -> bytes:
        return b"" if candidate.decisions is None else candidate.decisions.tobytes()

    def _with(self, decisions: Records) -> Candidate:
        return Candidate(self.best.scenario, decisions)

    def _streams(self) -> None:
        """Remove as many streams as possible while the run still fails. At least one remains."""
        ids = [each.id for each in self.best.scenario.traffic]
        if len(ids) == 1:
            return

        def happens(chosen: Sequence[str]) -> bool:
            candidate = self._of_streams(chosen)
            return bool(candidate.scenario.traffic) and self._try(candidate)

        left = fewest(ids, happens)
        self.report(f"streams: {len(ids)} -> {len(left)}")

    def _of_streams(self, ids: Sequence[str]) -> Candidate:
        scenario = with_streams(self.best.scenario, ids)
        known = [each.stream_id for each in scenario.traffic]
        decisions = self.origin.decisions
        return Candidate(scenario, decisions[np.isin(decisions["stream_id"], known)])

    def _length(self) -> None:
        for traffic in self.best.scenario.traffic:
            if traffic.replays:
                continue
            length = before = traffic.content.total_bytes
            while length // 2 >= BYTES_MIN:
                shorter = with_bytes(self.best.scenario, traffic.id, length // 2)
                if not self._try(Candidate(shorter, self.best.decisions)):
                    break
                length //= 2
            if length < before:
                self.report(f"length of {traffic.id}: {before} -> {length} bytes")

    def _rules(self) -> None:
        decisions = self._left()
        rules = np.unique(decisions["rule"]).tolist()

        def happens(chosen: Sequence[int]) -> bool:
            return self._try(self._with(decisions[np.isin(decisions["rule"], list(chosen))]))

        left = fewest(rules, happens)
        self.report(f"rules: {len(rules)} -> {len(left)}")

    def _decisions(self) -> None:
        found = self._left()
        # Similar decisions are sorted next to each other, because they can often be removed
        # together.
        order = ["rule", "stream_id", "link", "frame_type", "position", "order", "attempt"]
        found = found[np.argsort(found, order=order)]

        def happens(chosen: Sequence[int]) -> bool:
            return self._try(self._with(found[sorted(chosen)]))

        left = fewest(range(len(found)), happens)
        self.report(f"decisions: {len(found)} -> {len(left)}")

    def _left(self) -> Records:
        assert self.best.decisions is not None
        return self.best.decisions

    def _by_rules(self) -> None:
        """Run the best candidate with fault rules in place of its recorded decisions. If the run
        still fails, keep the rules.
        """
        rules = self.written_rules()
        try:
            candidate = Candidate(parse(self._text(rules)))
        except ScenarioError as error:
            # A decision about a frame after the end of a shortened stream cannot be a rule, because
            # the rule would never apply. A replay ignores the decision.
            self.report(f"these decisions cannot be written as rules: {error.errors[0]}")
            return
        if self.fails(candidate):
            self.rules = rules
            self.best = candidate
        ranges = range_count(rules)
        count = len(rules)
        text = f"{count} rule{_s(count)} with {ranges} range{_s(ranges)}"
        self.report(f"{text}: these rules alone {'fail' if self.is_sure else 'do not fail'}")

    def _acts(self) -> None:
        if self.rules is None:
            return
        for index, rule in enumerate(self.rules):
            for act in simpler(rule["act"]):
                changed = [*self.rules[:index], {**rule, "act": act}, *self.rules[index + 1 :]]
                candidate = Candidate(parse(self._text(changed)))
                if self.fails(candidate):
                    self.rules, self.best = changed, candidate
                    self.report(f"{rule['id']}: {_words(rule['act'])} -> {_words(act)}")
                    break


def _words(act: Document) -> str:
    """Return the name and the keys of a fault rule's act as one string, such as `hold until
    at_most`.
    """
    ((name, value),) = act.items()
    return " ".join(
        [name, *(key for key in value if key != "share")] if isinstance(value, dict) else [name]
    )


def expecting(scenario: Scenario, check: str) -> Scenario:
    """Return a copy of the scenario whose `expect` list contains only the given check.

    A check that is part of every run is not in `expect`. In that case, the scenario's first check
    is kept. Expected frames are left out: they refer to a rule of the original scenario.
    """
    kept = [each for each in scenario.expect if each.name != EXPECT_FRAMES]
    checks = [each for each in kept if each.name == check] or kept[:1] or [Check(name=ONCE)]
    return scenario.model_copy(update={"expect": tuple(checks)})


def with_streams(scenario: Scenario, ids: Sequence[str]) -> Scenario:
    """Return a copy of the scenario with only the given streams.

    Its rules, which a replay ignores, no longer refer to any stream.
    """
    # An archive replay is removed together with the stream that it replays.
    traffic = tuple(
        each
        for each in scenario.traffic
        if each.id in ids and (each.replays is None or each.replays in ids)
    )
    faults = tuple(
        each.model_copy(
            update={"what": each.what.model_copy(update={"streams": None}), "when": None}
        )
        for each in scenario.faults
    )
    expect = tuple(_about(each, ids) for each in scenario.expect)
    return scenario.model_copy(update={"traffic": traffic, "faults": faults, "expect": expect})


def _about(check: Check, ids: Sequence[str]) -> Check:
    """Return a copy of a check with its `traffic` argument limited to the given streams."""
    meant = check.arguments.get("traffic")
    if meant is None:
        return check
    named = [each for each in (meant if isinstance(meant, list) else [meant]) if each in ids]
    arguments = {key: value for key, value in check.arguments.items() if key != "traffic"}
    if named:
        arguments["traffic"] = named
    return check.model_copy(update={"arguments": arguments})


def with_bytes(scenario: Scenario, traffic_id: str, total_bytes: int) -> Scenario:
    """Return a copy of the scenario in which one stream and its archive replays have a different
    total length.
    """
    traffic = tuple(
        each.model_copy(
            update={"content": each.content.model_copy(update={"total_bytes": total_bytes})}
        )
        if traffic_id in (each.id, each.replays)
        else each
        for each in scenario.traffic
    )
    return scenario.model_copy(update={"traffic": traffic})


def _s(count: int) -> str:
    return "" if count == 1 else "s"
