"""Frames on the path from one host to another."""

import numpy as np

from windtunnel.harness.dissect.capture.pcap import address_halves
from windtunnel.harness.dissect.frames.frames import FRAME
from windtunnel.harness.dissect.frames.route import between, to_group

ADDRESS = {"a": "10.64.0.10", "b": "10.64.1.10"}
GROUP = "224.20.30.39"


def test_a_frame_to_a_group_is_on_the_path_to_each_member():
    frames = np.zeros(4, dtype=FRAME)
    ends = [("a", "b"), ("a", GROUP), ("a", "10.64.0.99"), ("b", "a")]
    for frame, (source, destination) in zip(frames, ends, strict=True):
        for name, text in (("source", source), ("destination", destination)):
            high, low = address_halves(ADDRESS.get(text, text))
            frame[f"{name}_high"], frame[f"{name}_low"] = high, low
    assert to_group(frames).tolist() == [False, True, False, False]
    assert between(frames, ADDRESS["a"], ADDRESS["b"]).tolist() == [True, True, False, False]
