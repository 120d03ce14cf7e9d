"""Converts a link direction's impairments to the arguments of `tc qdisc ... netem`.

Correlations are never used, because netem's correlated generator delivers only a fraction of the
requested share. The limit is always given, because netem's default of 1000 packets drops most
packets of a fast link with a delay.
"""

from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.schema.units import BILLION, NANOSECONDS

LIMIT_MIN = 10_000
LIMIT_MAX = 2_000_000
PACKETS_PER_S = 200_000
"""Assumed packet rate of a link without a rate limit, more than this lab can carry."""
SMALL_PACKET_BITS = 8 * 60
TAIL = 4
"""Largest deviation of a delay from its mean in netem's tables, in multiples of the jitter."""

_TC_UNITS = {name: scale for name, scale in NANOSECONDS.items() if name != "min"}


def limit(impairment: ImpairmentCase) -> int:
    """Return the limit of netem's queue in packets: the requested one, or twice the longest queue
    that can occur.
    """
    if impairment.queue_packets:
        return impairment.queue_packets
    per_second = PACKETS_PER_S
    if impairment.rate_bits_per_s:
        per_second = max(1, impairment.rate_bits_per_s // SMALL_PACKET_BITS)
    longest_ns = impairment.delay_ns + TAIL * impairment.jitter_ns
    return min(LIMIT_MAX, max(LIMIT_MIN, 2 * per_second * longest_ns // BILLION))


def arguments(impairment: ImpairmentCase) -> list[str]:
    """Return all arguments that follow the word `netem` on the command line."""
    options = ["limit", str(limit(impairment))]
    if impairment.loss is not None:
        options += _loss(impairment.loss)
    if impairment.delay_ns:
        options += _delay(impairment)
    if impairment.duplicate_ppb:
        options += ["duplicate", percent(impairment.duplicate_ppb)]
    if impairment.corrupt_ppb:
        options += ["corrupt", percent(impairment.corrupt_ppb)]
    if impairment.reorder_ppb:
        options += ["reorder", percent(impairment.reorder_ppb), "gap", str(impairment.reorder_gap)]
    if impairment.rate_bits_per_s:
        options += ["rate", f"{impairment.rate_bits_per_s}bit"]
    return options


def percent(share_ppb: int) -> str:
    """Format a share as an exact percentage for `tc`."""
    whole, rest = divmod(share_ppb, BILLION // 100)
    return f"{whole}.{rest:07d}".rstrip("0").rstrip(".") + "%"


def _loss(loss: LossCase) -> list[str]:
    model = {"iid": "random", "gilbert-elliott": "gemodel", "four-state": "state"}[loss.model]
    return ["loss", model, *(percent(share) for share in loss.shares_ppb)]


def _delay(impairment: ImpairmentCase) -> list[str]:
    options = ["delay", _time(impairment.delay_ns)]
    if impairment.jitter_ns:
        options.append(_time(impairment.jitter_ns))
        if impairment.distribution != "uniform":
            # Uniform is netem's default without a table.
            options += ["distribution", impairment.distribution]
    return options


def _time(duration_ns: int) -> str:
    scale, name = max(
        (scale, name) for name, scale in _TC_UNITS.items() if duration_ns % scale == 0
    )
    return f"{duration_ns // scale}{name}"
