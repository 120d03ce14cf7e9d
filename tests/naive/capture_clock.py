"""Reference implementation of the search for places where the times of a capture go back."""

import itertools


def steps_back(times_ns, step_ns):
    """Return (first packet, first time, last time, steps, greatest step, first packet behind one).

    `times_ns`: the times of all packets, None for those without a time. Packets count from 1.
    """
    timed = [(number, time) for number, time in enumerate(times_ns, 1) if time is not None]
    if not timed:
        return (0,) * 6
    steps = [
        (packet, before - time)
        for (_, before), (packet, time) in itertools.pairwise(timed)
        if before - time >= step_ns
    ]
    greatest = max((size for _, size in steps), default=0)
    first = steps[0][0] if steps else 0
    return (*timed[0], timed[-1][1], len(steps), greatest, first)
