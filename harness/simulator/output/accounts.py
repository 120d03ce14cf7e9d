"""Writes a simulated world's ledger (the middlebox's datagram counts), socket statistics and
simulation.json.

The ledger has the relay's format and comes from the same engine. No frame is ever late or rejected
by an interface, but a wire may be full.
"""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.harness.artifact.host.host_facts import SnmpFacts
from windtunnel.harness.artifact.middlebox.ledger import Ledger, PortAccount
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run.simulation import SUBJECT_FAILED, Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.engine.state import HOLD_OVERFLOWS, SESSION_OVERFLOWS
from windtunnel.harness.middlebox.impairment.impairment import is_on
from windtunnel.harness.middlebox.relay.report import (
    impairment_account,
    link_account,
    rule_accounts,
)
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.simulator.network.in_flight import OVERFLOWED
from windtunnel.harness.simulator.world import event_log, world_state
from windtunnel.harness.simulator.world.virtual_time import START_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld


def ledger(world: SimulatedWorld) -> Ledger:
    """Build the middlebox's ledger: the packet counts of links, rules and ports."""
    case, between = world.case, world.between
    links = {}
    for link, name in enumerate(case.link_names):
        account = link_account(between.engine, link)
        account.send_failures = int(between.wires.ends[link, OVERFLOWED])
        account.lag_ns = {"p50": 0, "p99": 0, "max": 0}
        if is_on(between.impairments, link):
            account.impairments = impairment_account(between.impairments, link)
            account.impairments.sent -= account.send_failures
        links[name] = account
    ports = {}
    if case.links:
        for host, row in zip(case.hosts, between.ports.tolist(), strict=True):
            ports[host.name] = PortAccount(
                received=row[world_state.RECEIVED_FROM],
                strays=row[world_state.STRAYS],
                unlinked=row[world_state.UNLINKED],
                copies=row[world_state.COPIES],
            )
    return Ledger(links, rule_accounts(between.engine, case), ports)


def write_accounts(world: SimulatedWorld, folder: RunDir) -> None:
    """Write the middlebox's ledger and the hosts' socket statistics to the run folder."""
    ledger(world).write(folder.ledger)
    for host, lost in zip(world.hosts, world.between.lost, strict=True):
        SnmpFacts(
            before={"RcvbufErrors": 0, "NoPorts": 0},
            after={
                "RcvbufErrors": int(lost[world_state.OVERFLOWS]),
                "NoPorts": int(lost[world_state.UNBOUND]),
            },
        ).write(folder.host(host.name).snmp)


def write_simulation(
    world: SimulatedWorld,
    folder: RunDir,
    *,
    traffic_ns: Sequence[int] = (0, 0),
    overran: str = "",
    exits: Sequence[ProcessExit] = (),
) -> None:
    """Write simulation.json. `traffic_ns` contains the publishers' start and end times."""
    state = world.between.events.state
    Simulation(
        digest=world.digest,
        datagrams=int(state[event_log.DATAGRAMS]),
        changes=int(state[event_log.CHANGES]),
        simulated_ns=world.now_ns - START_NS,
        traffic_started_ns=traffic_ns[0],
        traffic_ended_ns=traffic_ns[1],
        overran=overran,
        exits=list(exits),
    ).write(folder.simulation)


def require_room(world: SimulatedWorld) -> None:
    """Raise RuntimeError if the middlebox could not store all held frames or sessions."""
    for index, what in (
        (HOLD_OVERFLOWS, "frames were forwarded because the hold buffer was full"),
        (SESSION_OVERFLOWS, "SETUP frames were ignored because the session table was full"),
    ):
        if world.between.engine.state[index]:
            raise RuntimeError(f"{world.between.engine.state[index]} {what}")


def write_failed_start(case: Case, folder: RunDir, text: str) -> None:
    """Write simulation.json for a world whose drivers did not start. `text` says why."""
    log = folder.simulator_log.name
    exits = [
        ProcessExit(f"{each.name}/driver", "driver", SUBJECT_FAILED, False, log, text)
        for each in case.hosts
    ]
    facts = Simulation(digest="", datagrams=0, changes=0, simulated_ns=0, exits=exits)
    facts.write(folder.simulation)
