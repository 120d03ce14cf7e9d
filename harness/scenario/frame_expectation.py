"""The arguments of `expect_frames`: which frame must follow those that a rule matched, and when.

    expect:
      - expect_frames: {after: drop-first, then: NAK, from: b, to: a, within: 60ms}

A scenario may have several of these, one for each kind of answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem, unknown_name
from windtunnel.harness.scenario.schema.units import parse_duration, shown
from windtunnel.harness.scenario.validation.fault_validation import rule_directions

NAME = "expect_frames"
AFTER, THEN, FROM, TO, WITHIN, COUNT = "after", "then", "from", "to", "within", "count"
REQUIRED = (AFTER, THEN, FROM, TO, WITHIN)
ARGUMENTS = (*REQUIRED, COUNT, applies.KEY)
WITH_RANGE = ("NAK", "DATA")
"""Types that answer for a range of the stream: a NAK covers it, a retransmission repeats it."""
TYPES = (*WITH_RANGE, "SM", "SETUP", "ERR", "RTTM", "HEARTBEAT", "RSP_SETUP")
COUNT_MAX = 1_000_000


@dataclass(frozen=True)
class FrameExpectation:
    """The answers that are expected to each frame that a rule has matched."""

    after: str
    """Id of the fault rule."""
    then: str
    """Type of the answers."""
    from_host: str
    to_host: str
    within_ns: int
    count: int = 1
    """Least number of answers, or 0 if there must be none."""

    @property
    def about(self) -> str:
        """The subject of the expectation, which distinguishes it from others of its scenario."""
        return f"{self.then} {self.from_host}->{self.to_host} after {self.after}"


def parse_expectation(arguments: Mapping[str, Any]) -> FrameExpectation:
    """Convert the arguments of the check. Raises ValueError for the first invalid one, with its
    name as the second argument of the exception.
    """
    for name in REQUIRED:
        if name not in arguments:
            raise ValueError(f"expected the arguments {', '.join(REQUIRED)}, but {name} is missing")
    for name in arguments:
        if name not in ARGUMENTS:
            hint = f"the arguments are {', '.join(ARGUMENTS)}"
            raise ValueError(unknown_name("an argument of this check", name, ARGUMENTS, hint), name)
    for name in (AFTER, THEN, FROM, TO):
        if not isinstance(arguments[name], str):
            raise ValueError(f"expected a name, found {shown(repr(arguments[name]))}", name)
    if arguments[THEN] not in TYPES:
        text = f"expected one of {', '.join(TYPES)}, found {shown(arguments[THEN])!r}"
        raise ValueError(text, THEN)
    try:
        within_ns = parse_duration(arguments[WITHIN])
    except ValueError as error:
        raise ValueError(str(error), WITHIN) from error
    if within_ns <= 0:
        raise ValueError("expected a duration above 0", WITHIN)
    count = arguments.get(COUNT, 1)
    if type(count) is not int or not 0 <= count <= COUNT_MAX:
        text = f"expected a number of frames from 0 to {COUNT_MAX}, found {shown(repr(count))}"
        raise ValueError(text, COUNT)
    after, then, from_host, to_host = (arguments[each] for each in (AFTER, THEN, FROM, TO))
    return FrameExpectation(after, then, from_host, to_host, within_ns, count)


def expectation_problems(
    scenario: Scenario, arguments: Mapping[str, Any], path: Path
) -> Iterator[Problem]:
    """Yield a problem for each argument that is invalid, or does not fit the scenario."""
    try:
        expected = parse_expectation(arguments)
    except ValueError as error:
        text, *where = error.args
        yield Problem((*path, *where), text)
        return
    hosts = scenario.network.hosts
    named = ((FROM, expected.from_host), (TO, expected.to_host))
    unknown = [(name, host) for name, host in named if host not in hosts]
    for name, host in unknown:
        hint = f"the hosts are {', '.join(hosts)}"
        yield Problem((*path, name), unknown_name("a host", host, hosts, hint))
    rules = {each.id: each for each in scenario.faults}
    if expected.after not in rules:
        hint = f"the rules are {', '.join(rules)}" if rules else "the scenario has no `faults`"
        text = unknown_name("the id of a fault rule", expected.after, rules, hint)
        yield Problem((*path, AFTER), text)
    elif not unknown:
        ends = {expected.from_host, expected.to_host}
        found = rule_directions(scenario, rules[expected.after])
        if not any({*each} == ends for each in found):
            directions = ", ".join("->".join(each) for each in found)
            text = f"expected a rule for the link between {' and '.join(sorted(ends))}, found one "
            yield Problem((*path, AFTER), f"{text}for {directions}")
