"""Compares a calibration round's measured values with the requested values, and checks accuracy
limits.

    loss rate      inside the 99.9 % interval of the requested rate
    burst length   within 5 %
    added delay    of the relay, beyond the baseline transit: p50 within 0.3 ms, p99 within 2 ms

Delays applied by netem have no limit, because the kernel causes them. Delays also have no limit on
a machine where even a link without impairments is slow. The calibration is then partly void.
"""

from dataclasses import dataclass

import numpy as np

from windtunnel.harness.artifact.run.calibration import Measure
from windtunnel.harness.calibration import measure
from windtunnel.harness.calibration.measure import Delivery, Figure
from windtunnel.harness.calibration.plan import Impairment
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
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
class Baseline:
    """Transit times of packets on a link without impairments."""

    p50_ns: float = 0.0
    p99_ns: float = 0.0
    is_known: bool = False

    @property
    def problem(self) -> str:
        """The reason why delays cannot be checked on this machine, or an empty string."""
        if not self.is_known:
            return "added delays: no baseline, since the round without impairments is void"
        if self.p99_ns > DELAY_P99_NS:
            late_ms = self.p99_ns / MILLISECOND_NS
            return f"added delays: the baseline p99 is {late_ms:.1f} ms: this machine is too busy"
        return ""


def baseline_of(delivery: Delivery) -> Baseline:
    """Return the transit times in a calibration round without impairments."""
    taken = measure.delays_ns(delivery)
    p50, p99 = (measure.quantile(taken, part).value for part in (0.5, 0.99))
    return Baseline(p50, p99, is_known=True)


def measures(
    impairment: Impairment, delivery: Delivery, baseline: Baseline, backend: str
) -> list[Measure]:
    """Return all measured quantities of a calibration round."""
    settings = impairment.settings
    if settings is None:
        return _baseline(impairment.name, delivery)
    rows = []
    if settings.loss is not None:
        rows += _loss(impairment.name, settings, delivery)
    if settings.delay_ns:
        rows += _delay(impairment.name, settings, delivery, baseline, backend)
    if settings.duplicate_ppb:
        duplicated = len(delivery.numbers) - len(np.unique(delivery.numbers))
        rows.append(
            _share(
                impairment.name,
                "duplicated",
                settings.duplicate_ppb,
                duplicated,
                len(delivery.sent_ns),
            )
        )
    if settings.corrupt_ppb:
        corrupted = int(measure.lost(delivery).sum())
        rows.append(
            _share(
                impairment.name, "corrupted", settings.corrupt_ppb, corrupted, len(delivery.sent_ns)
            )
        )
    if settings.reorder_ppb:
        rows += _reorder(impairment.name, settings, delivery)
    if settings.rate_bits_per_s:
        rows.append(_rate(impairment.name, settings, delivery))
    return rows


def problems(rows: list[Measure]) -> list[str]:
    """Return a description of each measurement whose accuracy cannot be checked, because it has too
    few samples.
    """
    return [
        f"{each.impairment}: {each.samples} bursts are too few to check their length: increase "
        "--scale"
        for each in rows
        if each.quantity == BURST_LENGTH and not each.floor
    ]


def _rate(name: str, settings: ImpairmentCase, delivery: Delivery) -> Measure:
    """Return the measured rate at which packets arrived, together with the rate limit that was
    requested for the link.

    The requested rate is omitted if the link delivered all that was sent, because the rate limit
    then had no effect.
    """
    arrived = measure.bits_per_s(delivery)
    requested = (
        settings.rate_bits_per_s if measure.offered_bits_per_s(delivery) > arrived.high else 0
    )
    return _row(name, "rate", "Mbit/s", requested / 1e6 if requested else None, arrived, 1e6)


def _row(
    name: str,
    quantity: str,
    unit: str,
    requested: float | None,
    figure: Figure,
    scale: float = 1.0,
    floor: str = "",
    holds: bool = True,
) -> Measure:
    value, low, high = (each / scale for each in (figure.value, figure.low, figure.high))
    return Measure(name, quantity, unit, requested, value, low, high, figure.samples, floor, holds)


def _baseline(name: str, delivery: Delivery) -> list[Measure]:
    taken = measure.delays_ns(delivery)
    missing = int(measure.lost(delivery).sum())
    loss = measure.share(missing, len(delivery.sent_ns))
    return [
        _row(name, "loss rate", "%", 0.0, loss, 0.01, "none", missing == 0),
        _row(name, "transit p50", "ms", None, measure.quantile(taken, 0.5), MILLISECOND_NS),
        _row(name, "transit p99", "ms", None, measure.quantile(taken, 0.99), MILLISECOND_NS),
    ]


def _loss(name: str, settings: ImpairmentCase, delivery: Delivery) -> list[Measure]:
    assert settings.loss is not None
    missing = measure.lost(delivery)
    trials, count = len(missing), int(missing.sum())
    low, high = loss_interval(settings.loss, trials)
    requested = settings.loss
    rate = _row(
        name,
        "loss rate",
        "%",
        100 * requested.rate,
        measure.share(count, trials),
        0.01,
        f"{100 * low / trials:.3f} to {100 * high / trials:.3f}",
        low <= count <= high,
    )
    length = measure.burst_length(missing)
    is_close = abs(length.value / requested.burst_length - 1) <= BURST_ERROR
    is_vague = not is_close and length.low <= requested.burst_length <= length.high
    floor = "" if is_vague else f"within {BURST_ERROR:.0%}"
    burst = _row(
        name,
        BURST_LENGTH,
        "packets",
        requested.burst_length,
        length,
        1.0,
        floor,
        is_close or is_vague,
    )
    return [rate, burst]


def _delay(
    name: str, settings: ImpairmentCase, delivery: Delivery, baseline: Baseline, backend: str
) -> list[Measure]:
    taken = measure.delays_ns(delivery)
    if settings.reorder_ppb:
        # Packets that are reordered ahead of the delay are measured separately.
        taken = taken[taken > settings.delay_ns // 2]
    rows = []
    limits = ((0.5, baseline.p50_ns, DELAY_P50_NS), (0.99, baseline.p99_ns, DELAY_P99_NS))
    for part, transit_ns, limit_ns in limits:
        shape = float(np.quantile(deviations(settings.distribution), part))
        requested_ns = settings.delay_ns + shape * settings.jitter_ns
        figure = measure.quantile(taken, part)
        added = Figure(
            figure.value - transit_ns, figure.low - transit_ns, figure.high - transit_ns, len(taken)
        )
        holds, floor = True, ""
        if backend == "relay" and not baseline.problem:
            holds = abs(added.value - requested_ns) <= limit_ns
            floor = f"within {limit_ns / MILLISECOND_NS:g} ms"
        rows.append(
            _row(
                name,
                f"added delay p{round(100 * part)}",
                "ms",
                requested_ns / MILLISECOND_NS,
                added,
                MILLISECOND_NS,
                floor,
                holds,
            )
        )
    return rows


def _share(name: str, quantity: str, requested_ppb: int, hits: int, trials: int) -> Measure:
    low, high = interval(trials, requested_ppb / BILLION, measure.CONFIDENCE)
    return _row(
        name,
        quantity,
        "%",
        100 * requested_ppb / BILLION,
        measure.share(hits, trials),
        0.01,
        f"{100 * low / trials:.3f} to {100 * high / trials:.3f}",
        low <= hits <= high,
    )


def _reorder(name: str, settings: ImpairmentCase, delivery: Delivery) -> list[Measure]:
    part, distance = measure.reordering(delivery)
    cycle = settings.reorder_gap - 1 + BILLION / settings.reorder_ppb
    lasted_ns = (
        float(delivery.sent_ns[-1] - delivery.sent_ns[0]) if len(delivery.sent_ns) > 1 else 1.0
    )
    pace = len(delivery.sent_ns) / lasted_ns
    return [
        _row(name, "reordered", "%", 100 / cycle, part, 0.01),
        _row(name, "reorder distance", "packets", settings.delay_ns * pace, distance),
    ]
