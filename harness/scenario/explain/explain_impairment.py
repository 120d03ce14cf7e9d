"""Describes the impairments in a resolved scenario, with the long-run rate of each loss model."""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.scenario.schema.units import format_duration, format_rate, format_share


def impairment_lines(case: Case) -> Iterator[str]:
    """Yield the lines that describe the impairments of each link direction, under a heading."""
    if not case.impairments:
        return
    yield ""
    yield f"impairments of every packet, applied by {case.backend}"
    links = case.hosts_of_links(each.link for each in case.impairments)
    for link, impairment in zip(links, case.impairments, strict=True):
        for text in _texts(impairment):
            yield f"  {link}  {text}"


def impaired_lines(event: EventCase) -> Iterator[str]:
    """Yield the lines that describe the impairments that an event sets in all directions."""
    for each in event.impairments[:1]:
        yield from _texts(each)


def _texts(case: ImpairmentCase) -> Iterator[str]:
    if case.loss is not None:
        yield f"loss {_loss(case.loss)}"
    if case.duplicate_ppb:
        yield f"{format_share(case.duplicate_ppb)} duplicated"
    if case.corrupt_ppb:
        yield f"{format_share(case.corrupt_ppb)} corrupted, and discarded by the receiver"
    if case.delay_ns:
        jitter = ""
        if case.jitter_ns:
            jitter = f", {case.distribution} jitter of {format_duration(case.jitter_ns)}"
        yield f"delay {format_duration(case.delay_ns)}{jitter}"
    if case.reorder_ppb:
        share = format_share(case.reorder_ppb)
        which = "" if case.reorder_gap <= 1 else f" (only one in {case.reorder_gap} is eligible)"
        yield f"{share} of packets{which} skip the delay"
    if case.rate_bits_per_s:
        queue = f"{case.queue_packets} packets" if case.queue_packets else "unlimited"
        yield f"rate {format_rate(case.rate_bits_per_s)}, queue {queue}"


def _loss(loss: LossCase) -> str:
    shares = " ".join(format_share(share) for share in loss.shares_ppb)
    return (
        f"{loss.model} {shares}: {loss.rate:.3%} of the packets, "
        f"in bursts of {loss.burst_length:.2f} on average"
    )
