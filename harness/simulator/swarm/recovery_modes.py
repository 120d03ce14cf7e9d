"""Gives some streams of a swarm trial Windtunnel's modes of loss recovery, chosen by the seed.

    sender      windtunnel.retransmit-ranges
    receiver    windtunnel.nak-all-gaps, or of an unreliable stream windtunnel.gap-fill-*

Each side has its mode or Aeron's rule, so all four combinations occur. The choice has a random
generator of its own: everything else in a trial is as without the modes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from windtunnel.harness.scenario.resolved.case import TrafficCase

SHARE = 0.7
"""Share of the sides that have a mode."""
_DATAGRAMS = (0, 1, 2, 4, 16)
_DELAYS = ("", "", "100us", "5ms", "50ms")


def with_modes(seed: int, traffic: Sequence[TrafficCase]) -> tuple[TrafficCase, ...]:
    """Return the streams of a trial with the modes that the seed chooses."""
    rng = random.Random(f"recovery modes {seed}")
    return tuple(_with_modes(rng, each) for each in traffic)


def _with_modes(rng: random.Random, stream: TrafficCase) -> TrafficCase:
    publish, receive = stream.channel, stream.receive
    if rng.random() < SHARE:
        publish += "|windtunnel.retransmit-ranges=true"
    if rng.random() < SHARE:
        receive += "|windtunnel.nak-all-gaps=true" if stream.reliable else _gap_filling(rng)
    return stream.model_copy(update={"channel": publish, "receive": receive})


def _gap_filling(rng: random.Random) -> str:
    datagrams, delay = rng.choice(_DATAGRAMS), rng.choice(_DELAYS)
    found = f"|windtunnel.gap-fill-datagrams={datagrams}"
    return f"{found}|windtunnel.gap-fill-delay={delay}" if delay else found
