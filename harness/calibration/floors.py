"""A round's figures beside what was asked for, and which of them must hold.

    loss rate      inside the 99.9 % interval of what was asked for
    burst length   within 5 %
    added delay    of the relay, beyond the calm transit: p50 within 0.3 ms, p99 within 2 ms

Delays delivered by netem are reported without a floor: they are the kernel's own. So are those on
a machine where even a calm link is late, which makes the calibration void in part.
"""

from dataclasses import dataclass

import numpy as np

from windtunnel.harness.artifact.run.calibration import Measure
from windtunnel.harness.calibration import measure
from windtunnel.harness.calibration.measure import Figure, Passage
from windtunnel.harness.calibration.plan import Impairment
from windtunnel.harness.scenario.resolved.impairment_case import WeatherCase
from windtunnel.harness.scenario.schema.jitter import deviations
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.verdict.gates.impairment_gates import loss_interval
from windtunnel.harness.verdict.statistics.binomial import interval

BURST_LENGTH = "burst length"
BURST_ERROR = 0.05
DELAY_P50_NS = 300_000
DELAY_P99_NS = 2_000_000
MILLISECOND_NS = 1e6


@dataclass(frozen=True)
class Calm:
    """How long packets take without any weather."""

    p50_ns: float = 0.0
    p99_ns: float = 0.0
    is_known: bool = False

    @property
    def doubt(self) -> str:
        """Why no delay can be judged here; empty if it can."""
        if not self.is_known:
            return "added delays: the calm round is void, so there is nothing to take off"
        if self.p99_ns > DELAY_P99_NS:
            late_ms = self.p99_ns / MILLISECOND_NS
            return f"added delays: p99 of a calm link is {late_ms:.1f} ms, this machine is too busy"
        return ""


def calm_of(found: Passage) -> Calm:
    """The transit times of a round without weather."""
    taken = measure.delays_ns(found)
    p50, p99 = (measure.quantile(taken, part).value for part in (0.5, 0.99))
    return Calm(p50, p99, is_known=True)


def measures(impairment: Impairment, found: Passage, calm: Calm, backend: str) -> list[Measure]:
    """Everything that a round says."""
    weather = impairment.weather
    if weather is None:
        return _calm(impairment.name, found)
    rows = []
    if weather.loss is not None:
        rows += _loss(impairment.name, weather, found)
    if weather.delay_ns:
        rows += _delay(impairment.name, weather, found, calm, backend)
    if weather.duplicate_ppb:
        doubled = len(found.numbers) - len(np.unique(found.numbers))
        rows.append(
            _share(impairment.name, "doubled", weather.duplicate_ppb, doubled, len(found.sent_ns))
        )
    if weather.corrupt_ppb:
        damaged = int(measure.lost(found).sum())
        rows.append(
            _share(impairment.name, "damaged", weather.corrupt_ppb, damaged, len(found.sent_ns))
        )
    if weather.reorder_ppb:
        rows += _reorder(impairment.name, weather, found)
    if weather.rate_bits_per_s:
        rows.append(_rate(impairment.name, weather, found))
    return rows


def doubts(rows: list[Measure]) -> list[str]:
    """Which rows should have had a floor and cannot be judged, and why."""
    return [
        f"{each.impairment}: {each.samples} bursts are too few for their length; raise --scale"
        for each in rows
        if each.quantity == BURST_LENGTH and not each.floor
    ]


def _rate(name: str, weather: WeatherCase, found: Passage) -> Measure:
    """The rate that arrived; only a sender that offers more shows what the link takes."""
    arrived = measure.bits_per_s(found)
    asked = weather.rate_bits_per_s if measure.offered_bits_per_s(found) > arrived.high else 0
    return _row(name, "rate", "Mbit/s", asked / 1e6 if asked else None, arrived, 1e6)


def _row(
    name: str,
    quantity: str,
    unit: str,
    asked: float | None,
    figure: Figure,
    scale: float = 1.0,
    floor: str = "",
    holds: bool = True,
) -> Measure:
    value, low, high = (each / scale for each in (figure.value, figure.low, figure.high))
    return Measure(name, quantity, unit, asked, value, low, high, figure.samples, floor, holds)


def _calm(name: str, found: Passage) -> list[Measure]:
    taken = measure.delays_ns(found)
    missing = int(measure.lost(found).sum())
    loss = measure.share(missing, len(found.sent_ns))
    return [
        _row(name, "loss rate", "%", 0.0, loss, 0.01, "none", missing == 0),
        _row(name, "transit p50", "ms", None, measure.quantile(taken, 0.5), MILLISECOND_NS),
        _row(name, "transit p99", "ms", None, measure.quantile(taken, 0.99), MILLISECOND_NS),
    ]


def _loss(name: str, weather: WeatherCase, found: Passage) -> list[Measure]:
    assert weather.loss is not None
    missing = measure.lost(found)
    trials, count = len(missing), int(missing.sum())
    low, high = loss_interval(weather.loss, trials)
    asked = weather.loss
    rate = _row(
        name,
        "loss rate",
        "%",
        100 * asked.rate,
        measure.share(count, trials),
        0.01,
        f"{100 * low / trials:.3f} to {100 * high / trials:.3f}",
        low <= count <= high,
    )
    length = measure.burst_length(missing)
    is_close = abs(length.value / asked.burst_length - 1) <= BURST_ERROR
    is_vague = not is_close and length.low <= asked.burst_length <= length.high
    floor = "" if is_vague else f"within {BURST_ERROR:.0%}"
    burst = _row(
        name,
        BURST_LENGTH,
        "packets",
        asked.burst_length,
        length,
        1.0,
        floor,
        is_close or is_vague,
    )
    return [rate, burst]


def _delay(
    name: str, weather: WeatherCase, found: Passage, calm: Calm, backend: str
) -> list[Measure]:
    taken = measure.delays_ns(found)
    if weather.reorder_ppb:
        # Those that skip the delay are counted elsewhere.
        taken = taken[taken > weather.delay_ns // 2]
    rows = []
    limits = ((0.5, calm.p50_ns, DELAY_P50_NS), (0.99, calm.p99_ns, DELAY_P99_NS))
    for part, transit_ns, limit_ns in limits:
        shape = float(np.quantile(deviations(weather.distribution), part))
        asked_ns = weather.delay_ns + shape * weather.jitter_ns
        figure = measure.quantile(taken, part)
        added = Figure(
            figure.value - transit_ns, figure.low - transit_ns, figure.high - transit_ns, len(taken)
        )
        holds, floor = True, ""
        if backend == "relay" and not calm.doubt:
            holds = abs(added.value - asked_ns) <= limit_ns
            floor = f"within {limit_ns / MILLISECOND_NS:g} ms"
        rows.append(
            _row(
                name,
                f"added delay p{round(100 * part)}",
                "ms",
                asked_ns / MILLISECOND_NS,
                added,
                MILLISECOND_NS,
                floor,
                holds,
            )
        )
    return rows


def _share(name: str, quantity: str, asked_ppb: int, hits: int, trials: int) -> Measure:
    low, high = interval(trials, asked_ppb / BILLION, measure.CONFIDENCE)
    return _row(
        name,
        quantity,
        "%",
        100 * asked_ppb / BILLION,
        measure.share(hits, trials),
        0.01,
        f"{100 * low / trials:.3f} to {100 * high / trials:.3f}",
        low <= hits <= high,
    )


def _reorder(name: str, weather: WeatherCase, found: Passage) -> list[Measure]:
    part, distance = measure.overtaking(found)
    cycle = weather.reorder_gap - 1 + BILLION / weather.reorder_ppb
    lasted_ns = float(found.sent_ns[-1] - found.sent_ns[0]) if len(found.sent_ns) > 1 else 1.0
    pace = len(found.sent_ns) / lasted_ns
    return [
        _row(name, "overtaking", "%", 100 / cycle, part, 0.01),
        _row(name, "reorder distance", "packets", weather.delay_ns * pace, distance),
    ]
