"""Reference implementation of RFC 6298's smoothing, with the whole history of samples."""

from math import floor

SAMPLE_MAX = 2_000_000_000


def smoothed(samples: list[int]) -> tuple[int, int]:
    """Return (smoothed time, deviation) after all samples."""
    time, deviation = 0, 0
    for number, each in enumerate(samples):
        sample = min(max(each, 1), SAMPLE_MAX)
        if number == 0:
            time, deviation = sample, floor(sample / 2)
        else:
            error = sample - time
            deviation = floor(deviation + (abs(error) - deviation) / 4)
            time = max(1, floor(time + error / 8))
    return time, deviation
