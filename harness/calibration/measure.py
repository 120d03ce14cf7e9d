"""Measures what a calibration round delivered, from two captures of numbered frames.

    near  0 1 2 3 4 5 ...   times at which packets left host a
    far   0 2 1 1 5 ...     times at which they reached host b: 3 and 4 lost, 1 duplicated and late

Every value has an interval. Quantiles use order statistics and shares use exact binomial intervals;
both are valid for any distribution.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.calibration.probe import FRAME_LENGTH
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
from windtunnel.harness.verdict.statistics.binomial import interval

CONFIDENCE = 0.999
REACH = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
NUMBER_AT = 32
"""Offset of the packet number within its frame."""
PACKET_BITS = 8.0 * (FRAME_LENGTH + 42)
"""Length of a packet in bits, including the Ethernet, IP and UDP headers."""


@dataclass(frozen=True)
class Figure:
    """A measured value, its 99.9 % interval, and the number of samples."""

    value: float
    low: float
    high: float
    samples: int


@dataclass(frozen=True)
class Delivery:
    """The departure and arrival times of all packets in a calibration round."""

    sent_ns: NDArray[np.int64]
    """Departure time of each packet, by packet number."""
    numbers: NDArray[np.int64]
    """Numbers of the packets that arrived intact, in order of arrival, including copies."""
    arrived_ns: NDArray[np.int64]
    corrupted: int


def match_captures(near: Capture, far: Capture, sender: str) -> Delivery:
    """Match the packets in two captures by the numbers in their frames."""
    numbers, times_ns = _numbered(near, sender)
    sent_ns = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, dtype=np.int64)
    sent_ns[numbers] = times_ns
    arrived, arrived_ns = _numbered(far, sender)
    known = (arrived >= 0) & (arrived < len(sent_ns))
    return Delivery(sent_ns, arrived[known], arrived_ns[known], far.damaged)


def _numbered(capture: Capture, sender: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows = capture.frames[sent_by(capture.frames, sender)]
    at = rows["at"].astype(np.int64)[:, None] + NUMBER_AT + np.arange(8)
    numbers = np.ascontiguousarray(capture.buf[at]).view("<i8").reshape(-1)
    return numbers.astype(np.int64), rows["time_ns"].astype(np.int64)


def lost(delivery: Delivery) -> NDArray[np.bool_]:
    """Return an array with one flag per packet number, which is true if the packet never
    arrived.
    """
    missing = np.ones(len(delivery.sent_ns), dtype=bool)
    missing[delivery.numbers] = False
    return missing


def share(hits: int, trials: int) -> Figure:
    """Return the share of hits in a number of trials, with the interval in which another round's
    share is expected to be.
    """
    value = hits / trials if trials else 0.0
    low, high = interval(trials, value, CONFIDENCE)
    return Figure(value, low / max(trials, 1), high / max(trials, 1), trials)


def burst_length(missing: NDArray[np.bool_]) -> Figure:
    """Return the mean length of loss bursts. A burst is an unbroken run of lost packets."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], missing.astype(np.int8), [0]])))
    lengths = (edges[1::2] - edges[::2]).astype(np.float64)
    return _mean(lengths)


def delays_ns(delivery: Delivery) -> NDArray[np.int64]:
    """Return the sorted transit times of the packets, using the first copy of each."""
    numbers, first = np.unique(delivery.numbers, return_index=True)
    taken: NDArray[np.int64] = np.sort(delivery.arrived_ns[first] - delivery.sent_ns[numbers])
    return taken


def quantile(values: NDArray[np.int64], part: float) -> Figure:
    """Return a quantile of sorted values, with its confidence interval from order statistics."""
    count = len(values)
    if count == 0:
        return Figure(0.0, 0.0, 0.0, 0)
    low, high = interval(count, part, CONFIDENCE)
    at = min(count - 1, int(part * count))
    return Figure(
        float(values[at]),
        float(values[max(0, low - 1)]),
        float(values[min(count - 1, high)]),
        count,
    )


def reordering(delivery: Delivery) -> tuple[Figure, Figure]:
    """Return the share of reordered packets, and the average number of packets that each of them
    overtook.
    """
    _, first = np.unique(delivery.numbers, return_index=True)
    arrived = delivery.numbers[np.sort(first)]
    rank = np.argsort(np.argsort(arrived))
    ahead = rank - np.arange(len(arrived))
    # A packet that skips a delay moves ahead of all that it overtakes, which each move back by one.
    passed = ahead[ahead > 1].astype(np.float64)
    return share(len(passed), len(arrived)), _mean(passed)


def bits_per_s(delivery: Delivery) -> Figure:
    """Return the rate at which packets arrived, in bits per second including headers."""
    count = len(delivery.numbers)
    if count < 2:
        return Figure(0.0, 0.0, 0.0, count)
    gaps_ns = np.diff(np.sort(delivery.arrived_ns)).astype(np.float64)
    spacing = _mean(gaps_ns)
    return Figure(
        PACKET_BITS * 1e9 / spacing.value,
        PACKET_BITS * 1e9 / spacing.high,
        PACKET_BITS * 1e9 / spacing.low,
        count,
    )


def offered_bits_per_s(delivery: Delivery) -> float:
    """Return the rate at which packets were sent, in bits per second including headers."""
    count = len(delivery.sent_ns)
    if count < 2:
        return 0.0
    return PACKET_BITS * 1e9 * (count - 1) / float(delivery.sent_ns[-1] - delivery.sent_ns[0])


def _mean(values: NDArray[np.float64]) -> Figure:
    if len(values) == 0:
        return Figure(0.0, 0.0, 0.0, 0)
    mean = float(values.mean())
    reach = REACH * float(values.std()) / math.sqrt(len(values))
    return Figure(mean, mean - reach, mean + reach, len(values))
