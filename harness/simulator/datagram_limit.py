"""Limits the datagrams that a host sends in a simulated run, so that a driver that sends in each of
its turns, a million times per simulated second, does not fill the disk.

    limit = DATAGRAMS + DATAGRAMS_PER_S * simulated seconds
            + DATAGRAMS_PER_MESSAGE * planned messages * (their receivers + 1)

Real networks have such a limit, too: there, datagrams beyond it are lost. The limit is several
times what drivers send under heavy loss, and far below what one that never rests sends.
"""

from __future__ import annotations

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.validation.traffic_validation import content_count
from windtunnel.harness.simulator.world import world_state
from windtunnel.harness.simulator.world.virtual_time import START_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld

DATAGRAMS = 1_000_000
DATAGRAMS_PER_S = 100_000
DATAGRAMS_PER_MESSAGE = 4


class TooManyDatagrams(Exception):
    """Raised if the driver of a host has sent more datagrams than a run may have."""


def require_few_datagrams(world: SimulatedWorld) -> None:
    """Raise TooManyDatagrams if a host has sent more datagrams than the limit for its case."""
    sent = world.between.ports[:, world_state.RECEIVED_FROM]
    most = int(sent.max(initial=0))
    if most <= DATAGRAMS:
        return
    simulated_s = (world.now_ns - START_NS) / 1e9
    messages = planned_messages(world.case)
    limit = DATAGRAMS + int(DATAGRAMS_PER_S * simulated_s) + DATAGRAMS_PER_MESSAGE * messages
    if most > limit:
        raise TooManyDatagrams(
            f"the driver on host {world.case.hosts[int(sent.argmax())].name} sent {most} datagrams "
            f"in {simulated_s:.3f} s of simulated time: expected at most {limit}. "
            "A driver that sends in each of its turns does not end"
        )


def planned_messages(case: Case) -> int:
    """Return the number of messages that a case plans, once for each receiver and the publisher."""
    return sum(
        content_count(each.total_bytes, each.shortest_bytes, each.longest_bytes)
        * (1 + max(len(each.subscribers), len(each.destinations)))
        for each in case.traffic
    )
