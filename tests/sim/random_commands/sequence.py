"""Run a sequence of random commands on three hosts with the C driver and on three with ours.

    python -m tests.sim.random_commands.sequence SEED FOLDER

A process of its own, because the simulator replaces the system calls of the C driver's library.
Ends with 1, and shows the last operations and the differences, if the drivers differ.
"""

import sys
from itertools import chain
from pathlib import Path
from random import Random

from tests.peer.random_commands.state import differences, state
from tests.sim.random_commands.simulated_hosts import ADDRESSES, MS, open_worlds, places
from tests.sim.random_commands.timed_operations import TimedOperations

OPERATIONS = 60
POLL_NS = 50 * MS
END_NS = 10_000 * MS
"""Longer than all timeouts. What has not ended until then does not end.

A publication does not, for example, if all receivers of its group are gone but not the others.
"""
AGREEMENT_TIMEOUT_NS = 30_000 * MS
LAST = 30
SUPPLIERS = (
    "aeron_min_flow_control_strategy_supplier",
    "aeron_tagged_flow_control_strategy_supplier",
)
SETTINGS = {
    "AERON_SPIES_SIMULATE_CONNECTION": ("true",), "AERON_RELIABLE_STREAM": ("false",),
    "AERON_TETHER_SUBSCRIPTIONS": ("false",), "AERON_REJOIN_STREAM": ("false",),
    "AERON_UNICAST_FLOWCONTROL_SUPPLIER": SUPPLIERS,
    "AERON_MULTICAST_FLOWCONTROL_SUPPLIER": SUPPLIERS,
    "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT": ("300ms",),
    "AERON_UNTETHERED_LINGER_TIMEOUT": ("300ms",),
    "AERON_UNTETHERED_RESTING_TIMEOUT": ("500ms",),
    "AERON_RCV_INITIAL_WINDOW_LENGTH": ("4k", "32k"),
    "AERON_MTU_LENGTH": ("2048",), "AERON_IPC_MTU_LENGTH": ("4096",),
    "AERON_TERM_BUFFER_SPARSE_FILE": ("false",), "AERON_RETRANSMIT_UNICAST_LINGER": ("1ms",),
    "AERON_FLOW_CONTROL_GROUP_MIN_SIZE": ("1", "2"), "AERON_RECEIVER_GROUP_TAG": ("7",),
    "AERON_RECEIVER_GROUP_CONSIDERATION": ("false", "true"),
    "AERON_PUBLICATION_TERM_WINDOW_LENGTH": ("16k",),
    "AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH": ("16k",),
}  # fmt: skip
IMPAIRMENTS = ({}, {"loss": "3%"}, {"loss": "10%", "duplicate": "5%"})


def run(seed: int, folder: Path) -> None:
    """Raise AssertionError if the drivers differ."""
    random = Random(seed)
    settings = {
        name: random.choice(values) for name, values in SETTINGS.items() if random.random() < 0.25
    }
    impairments = random.choice(IMPAIRMENTS)
    with open_worlds(folder, seed, settings, impairments) as worlds:
        hosts: list[TimedOperations] = []
        drivers = []
        for index in range(len(ADDRESSES)):
            drivers.append(worlds.drivers(index))
            hosts.append(TimedOperations(random, worlds, index, drivers[-1], places(index), hosts))
        for _ in range(OPERATIONS):
            operations = random.choice(hosts)
            operations.done.append(f"on {'abc'[hosts.index(operations)]}:")
            operations.next()
            agree(worlds, hosts, drivers)


def agree(worlds, hosts, drivers):
    """Let time pass until the drivers have responded, have the same state and the same responses,
    and nothing is ending.
    """
    waited_ns = 0
    while True:
        worlds.advance(POLL_NS)
        waited_ns += POLL_NS
        for driver in chain(*drivers):
            driver.receive()  # A host may have the image before another one names its session.
        lines, are_answered, ending = [], True, []
        for operations, pair in zip(hosts, drivers, strict=True):
            operations.keep_alive()
            lines += differences(pair, [state(driver) for driver in pair])
            are_answered &= operations.is_answered
            ending += [operations.is_ending(index) for index in range(len(pair))]
        if are_answered and not lines and (not any(ending) or waited_ns > END_NS):
            return
        if waited_ns > AGREEMENT_TIMEOUT_NS:
            done = "\n".join(hosts[0].done[-LAST:])
            raise AssertionError(f"the drivers differ after:\n{done}\n" + "\n".join(lines))


if __name__ == "__main__":
    run(int(sys.argv[1]), Path(sys.argv[2]))
