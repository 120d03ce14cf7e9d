"""The facts that a publisher records about its stream, both in real and in simulated runs."""

from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.workload.stop import GaveUp, SubjectError

ADMIN_ACTIONS_MAX = 10_000
"""Maximum number of consecutive ADMIN_ACTION results.

ADMIN_ACTION means that the log was rotated to its next term, so the next offer finds room there or
hits the limit. A log that returns it this often is broken, even on the slowest machine.
"""


_NAMES = {
    result.NOT_CONNECTED: "NOT_CONNECTED",
    result.CLOSED: "CLOSED",
    result.MAX_POSITION_EXCEEDED: "MAX_POSITION_EXCEEDED",
    result.ERROR: "ERROR",
}


def refusal(message_count: int, length: int, code: int, close_reason: str) -> SubjectError:
    """Return the error of an offer that a publication refused for good, or that has no subscriber.
    In the latter case the publisher gave up.
    """
    kind = GaveUp if code == result.NOT_CONNECTED else SubjectError
    reason = f": {close_reason}" if close_reason else ""
    return kind(
        f"offer of message {message_count} ({length} bytes): expected a position, found "
        f"{_NAMES.get(code, code)}{reason}"
    )


def require_turned(admin_action_count: int, message_count: int, length: int) -> None:
    """Raise SubjectError if a publication has returned ADMIN_ACTION too often for one message."""
    if admin_action_count > ADMIN_ACTIONS_MAX:
        raise SubjectError(
            f"offer of message {message_count} ({length} bytes): expected a position, found "
            f"ADMIN_ACTION {admin_action_count} times in a row (limit {ADMIN_ACTIONS_MAX})"
        )


def begin_facts(traffic: TrafficCase, started_ns: int) -> PublisherFacts:
    """Return the facts about a publisher that are known before its publication exists."""
    return PublisherFacts(
        session_id=0,
        stream_id=traffic.stream_id,
        initial_term_id=traffic.initial_term_id or 0,
        term_length=traffic.term_length,
        mtu=traffic.mtu,
        start_position=traffic.initial_position,
        end_position=traffic.initial_position,
        message_count=0,
        back_pressure_count=0,
        admin_action_count=0,
        started_ns=started_ns,
        ended_ns=0,
        error=None,
    )


def note_stream(facts: PublisherFacts, publication: Publication) -> None:
    """Record the publication's actual parameters, which can differ from those in the case."""
    facts.session_id = publication.session_id
    facts.initial_term_id = publication.initial_term_id
    facts.term_length = publication.term_length
    facts.mtu = publication.mtu_length
    facts.start_position = publication.position
