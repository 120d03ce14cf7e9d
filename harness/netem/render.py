"""The weather of a link direction as arguments of `tc qdisc ... netem`.

Never a correlation: netem's correlated generator delivers a fraction of what it is asked for. The
limit is always given: netem's own of 1000 packets loses most of them on a fast link with a delay,
and nobody would know why.
"""

from windtunnel.harness.scenario.resolved.impairment_case import LossCase, WeatherCase
from windtunnel.harness.scenario.schema.units import BILLION, NANOSECONDS

LIMIT_MIN = 10_000
LIMIT_MAX = 2_000_000
PACKETS_PER_S = 200_000
"""More than this lab can carry; what a link without a rate is reckoned with."""
SMALL_PACKET_BITS = 8 * 60
TAIL = 4
"""Jitters beyond the mean that a delay can reach: netem's tables end there."""

_TC_UNITS = {name: scale for name, scale in NANOSECONDS.items() if name != "min"}


def limit(weather: WeatherCase) -> int:
    """Packets that may be under way: the ordered queue, or twice what can ever be there."""
    if weather.queue_packets:
        return weather.queue_packets
    per_second = PACKETS_PER_S
    if weather.rate_bits_per_s:
        per_second = max(1, weather.rate_bits_per_s // SMALL_PACKET_BITS)
    longest_ns = weather.delay_ns + TAIL * weather.jitter_ns
    return min(LIMIT_MAX, max(LIMIT_MIN, 2 * per_second * longest_ns // BILLION))


def arguments(weather: WeatherCase) -> list[str]:
    """All that follows the word `netem`."""
    words = ["limit", str(limit(weather))]
    if weather.loss is not None:
        words += _loss(weather.loss)
    if weather.delay_ns:
        words += _delay(weather)
    if weather.duplicate_ppb:
        words += ["duplicate", percent(weather.duplicate_ppb)]
    if weather.corrupt_ppb:
        words += ["corrupt", percent(weather.corrupt_ppb)]
    if weather.reorder_ppb:
        words += ["reorder", percent(weather.reorder_ppb), "gap", str(weather.reorder_gap)]
    if weather.rate_bits_per_s:
        words += ["rate", f"{weather.rate_bits_per_s}bit"]
    return words


def percent(share_ppb: int) -> str:
    """A share as `tc` takes it, without loss."""
    whole, rest = divmod(share_ppb, BILLION // 100)
    return f"{whole}.{rest:07d}".rstrip("0").rstrip(".") + "%"


def _loss(loss: LossCase) -> list[str]:
    word = {"iid": "random", "gilbert-elliott": "gemodel", "four-state": "state"}[loss.model]
    return ["loss", word, *(percent(share) for share in loss.shares_ppb)]


def _delay(weather: WeatherCase) -> list[str]:
    words = ["delay", _time(weather.delay_ns)]
    if weather.jitter_ns:
        words.append(_time(weather.jitter_ns))
        if weather.distribution != "uniform":
            # Uniform is what netem does without a table of its own.
            words += ["distribution", weather.distribution]
    return words


def _time(duration_ns: int) -> str:
    scale, name = max(
        (scale, name) for name, scale in _TC_UNITS.items() if duration_ns % scale == 0
    )
    return f"{duration_ns // scale}{name}"
