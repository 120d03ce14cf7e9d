"""Validates impairments: rejects values that are valid individually but cannot be applied."""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.scenario.schema.network import Link
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.units import BILLION, format_duration
from windtunnel.harness.scenario.validation.loss_model_validation import loss_model_problems

PACKET_BITS = 8 * 1_500
"""Number of bits in a full packet, to convert a rate to packets."""

BOTH = "both"


def impairment_problems(link: Link, at: Path) -> Iterator[Problem]:
    """Yield all problems with a link's impairments. `at` is the link's path."""
    top: Path = (*at, "impairments")
    first, second = link.between
    impairments = link.impairments
    known = (f"{first}->{second}", f"{second}->{first}", BOTH)
    for key, each in impairments.items():
        if key not in known:
            yield Problem((*top, key), f"expected {', '.join(known)}, found {key!r}")
        elif key == BOTH and len(impairments) > 1:
            text = "`both` cannot be combined with other directions: remove one of them"
            yield Problem((*top, key), text)
        yield from direction_problems(each, (*top, key))
    if link.backend == "netem" and not impairments:
        text = "expected `impairments`, or backend relay: netem has nothing to apply"
        yield Problem((*at, "backend"), text)


def shared_netem_problems(links: tuple[Link, ...]) -> Iterator[Problem]:
    """Yield a problem for each link whose netem would also impair other links, because netem
    applies to all packets sent to a host.
    """
    for index, link in enumerate(links):
        if link.backend != "netem":
            continue
        for receiver, sender in (link.between, link.between[::-1]):
            others = [each for each in links if each is not link and receiver in each.between]
            if others and {f"{sender}->{receiver}", BOTH} & set(link.impairments):
                text = (
                    f"expected backend relay: netem cannot distinguish this link's packets to "
                    f"{receiver} from those of other links ({len(others)})"
                )
                yield Problem(("network", "links", index, "backend"), text)
                break


def direction_problems(impairments: Impairments, path: Path) -> Iterator[Problem]:
    """Yield all problems with the impairments of a link direction."""
    if not impairments.model_fields_set:
        yield Problem(path, "expected at least one of loss, delay, rate, duplicate, corrupt")
    yield from loss_model_problems(impairments.loss, (*path, "loss"))
    delay = impairments.delay
    if delay is not None and delay.jitter_ns > delay.mean_ns:
        text = f"expected at most the mean of {format_duration(delay.mean_ns)}"
        yield Problem((*path, "delay", "jitter"), f"{text}: a delay cannot be negative")
    if delay is not None and delay.jitter_ns == 0 and "distribution" in delay.model_fields_set:
        yield Problem((*path, "delay", "distribution"), "needs jitter")
    if impairments.reorder is not None and delay is None:
        yield Problem((*path, "reorder"), "needs a delay: reordered packets skip the delay")
    yield from _queue(impairments, path)


def _queue(impairments: Impairments, path: Path) -> Iterator[Problem]:
    if impairments.queue_packets is None:
        return
    if impairments.rate_bits_per_s is None:
        yield Problem((*path, "queue"), "needs a rate: without one the queue is always empty")
        return
    delay = impairments.delay
    held_ns = delay.mean_ns + delay.jitter_ns if delay else 0
    least = 2 * impairments.rate_bits_per_s * held_ns // (BILLION * PACKET_BITS)
    if impairments.queue_packets < least:
        text = f"expected at least {least}, twice the number of packets that the delay holds"
        yield Problem((*path, "queue"), f"{text}, found {impairments.queue_packets}")
