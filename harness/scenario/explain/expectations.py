"""Determines which checks a scenario can expect to pass, because Aeron guarantees the behaviour
that they verify.

reliable, every receiver awaited       every message once, to the end of the stream
reliable, rejoins                      each image a contiguous range
reliable, a receiver not awaited       a contiguous range from its join on
unreliable                             whole messages; padding only in place of lost data
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.case import Case, CheckCase, TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import waits_for

Expected = tuple[str, str]
"""The name of a check, and the subscriber's host if it does not apply to all, else empty."""


def expectations(traffic: TrafficCase) -> list[Expected]:
    """Return the checks that a stream passes if the driver keeps Aeron's guarantees."""
    found: list[Expected] = []
    if not traffic.reliable:
        names = ("delivered_intact", "positions_covered", "pad_only_where_lost", "no_naks")
        found += [(name, "") for name in names]
    elif traffic.rejoins:
        found.append(("delivered_in_parts", ""))
    else:
        late = [
            flow.to_host
            for flow in traffic.flows
            if flow.to_host in traffic.partial or not waits_for(flow)
        ]
        if set(late) != set(traffic.subscribers):
            found += [("delivered_once", ""), ("rcv_pos_reaches_end", "")]
        found += [("delivered_unbroken", host) for host in dict.fromkeys(late)]
    if traffic.archived:
        found.append(("recording_equals_published", ""))
    if traffic.merges is not None:
        found.append(("merged_into_live", ""))
    return found


def expectation_lines(case: Case, traffic: TrafficCase) -> Iterator[str]:
    """Yield a line with the checks that a stream can expect to pass, and a line with those of them
    that are missing from `expect`.
    """
    known = expectations(traffic)
    yield f"can expect {', '.join(_text(each) for each in known)}"
    missing = [
        each for each in known if not any(_has(check, traffic, each) for check in case.expect)
    ]
    if missing:
        yield f"  not in `expect`: {', '.join(_text(each) for each in missing)}"


def _text(expected: Expected) -> str:
    name, host = expected
    return f"{name} at {host}" if host else name


def _has(check: CheckCase, traffic: TrafficCase, expected: Expected) -> bool:
    """Return whether one of the scenario's checks verifies what is expected of a stream."""
    name, host = expected
    streams = check.arguments.get("traffic", traffic.id)
    hosts = check.arguments.get("to", "" if host in traffic.partial else host)
    return (
        check.name == name
        and traffic.id in _listed(streams)
        and (not host or host in _listed(hosts))
    )


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
