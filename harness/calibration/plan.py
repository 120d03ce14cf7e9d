"""The rounds of a calibration: one impairment per round, with enough packets for an accurate
measurement.

A mean burst length within 5 % requires about 3500 bursts, and a loss rate within a few per cent
requires some thousand losses. High shares are chosen, so this takes only seconds.
"""

from dataclasses import dataclass

from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.schema.units import BILLION

PERCENT = BILLION // 100
MILLISECOND_NS = 1_000_000


@dataclass(frozen=True)
class Impairment:
    """One calibration round: an impairment, and the number of packets to send through it."""

    name: str
    settings: ImpairmentCase | None
    packets: int


def impairments(scale: float = 1.0) -> list[Impairment]:
    """Return all calibration rounds. The first is the baseline, to which the other rounds' delays
    are relative.
    """
    bursts = LossCase(
        model="gilbert-elliott",
        shares_ppb=(5 * PERCENT, 20 * PERCENT, 100 * PERCENT, 0),
    )
    four = LossCase(
        model="four-state",
        shares_ppb=(2 * PERCENT, 30 * PERCENT, 20 * PERCENT, 50 * PERCENT, PERCENT),
    )
    alone = LossCase(model="iid", shares_ppb=(5 * PERCENT,))
    delay: dict[str, object] = {"delay_ns": 5 * MILLISECOND_NS}
    rounds: list[tuple[str, dict[str, object], int]] = [
        ("loss, independent", {"loss": alone}, 60_000),
        ("loss, two states", {"loss": bursts}, 120_000),
        ("loss, four states", {"loss": four}, 120_000),
        ("delay", delay, 40_000),
        ("delay, uniform", {**delay, "jitter_ns": MILLISECOND_NS}, 40_000),
        (
            "delay, normal",
            {**delay, "jitter_ns": MILLISECOND_NS, "distribution": "normal"},
            40_000,
        ),
        (
            "delay, pareto",
            {**delay, "jitter_ns": MILLISECOND_NS, "distribution": "pareto"},
            40_000,
        ),
        ("duplicate", {"duplicate_ppb": 2 * PERCENT}, 40_000),
        ("corrupt", {"corrupt_ppb": 2 * PERCENT}, 40_000),
        ("reorder", {**delay, "reorder_ppb": 10 * PERCENT, "reorder_gap": 5}, 40_000),
        ("rate", {"rate_bits_per_s": 4_000_000, "queue_packets": 200}, 10_000),
    ]
    found = [Impairment("baseline", None, round(20_000 * scale))]
    for name, settings, packets in rounds:
        case = ImpairmentCase.model_validate({"link": "a->b", **settings})
        found.append(Impairment(name, case, round(packets * scale)))
    return found
