"""A synthetic stream in a capture: frames at given times and positions, with feedback."""

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import DATA
from windtunnel.harness.replay.sightings import FEEDBACK, TRANSMISSION, Stream

US, MS = 1_000, 1_000_000
LENGTH = 64
NEAR = [(at * 100 * US, at * LENGTH) for at in range(20)]
"""Twenty frames, one every 100 us."""


def stream(passages, feedback=(), numbers=None, in_group=False):
    """Return a stream with frames (time, position) and feedback (time, kind, position, length).

    `numbers` are the packet identifications of the frames in order of time.
    """
    frames = np.zeros(len(passages), dtype=TRANSMISSION)
    for row, (time_ns, position) in zip(frames, sorted(passages), strict=True):
        row["time_ns"], row["position"], row["length"] = time_ns + 1, position, LENGTH
        row["payload"], row["frame_type"] = LENGTH - 32, DATA
    if numbers is not None:
        frames["identification"] = numbers
    back = np.zeros(len(feedback), dtype=FEEDBACK)
    for row, values in zip(back, sorted(feedback), strict=True):
        for name, value in zip(
            ("time_ns", "frame_type", "position", "length"), values, strict=True
        ):
            row[name] = value
    return Stream(
        session_id=7,
        stream_id=1001,
        port=24325,
        source=b"a",
        initial_term_id=0,
        term_length=65536,
        mtu=1408,
        has_setup=True,
        transmissions=frames,
        feedback=back,
        has_ended=True,
        in_group=in_group,
    )


def arrived(departures, transit_ns=30 * US, skew_ns=0):
    return [(time_ns + transit_ns + skew_ns, position) for time_ns, position in departures]


def summary(outcomes):
    return sorted((each.what, each.position // LENGTH, each.attempt) for each in outcomes)
