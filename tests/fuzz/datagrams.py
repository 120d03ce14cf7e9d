"""An attack with mutated datagrams on a live sender and a live receiver, in epochs.

    open attacked streams -> attack -> close them -> checked streams deliver -> resources as before

Checks: no checked subscriber finds a wrong byte, no position decreases, and after each epoch every
resource is released; memory does not grow from the second epoch on.
"""

import time
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import transport
from tests.fuzz.world import MODES, MS, World, resident_kib, world
from windtunnel.harness.fuzz import mutation
from windtunnel.harness.fuzz.streams import KINDS

EPOCH = 200_000
EACH = 16
"""Datagrams per mailbox and turn."""
CHECKED_EVERY = 100
"""Number of turns between two checks."""
GROWTH_KIB_MAX = 24 * 1024
"""Memory that allocators may retain; a leak of 100 bytes per datagram would be far more."""


def attack(
    folder: Path,
    count: int,
    seed: int,
    report: Callable[[str], object] = print,
    *,
    modes: bool = False,
) -> int:
    """Inject `count` datagrams, with `modes` into streams that have the modes of loss recovery.
    Returns how many arrived; raises AssertionError.
    """
    report(f"datagrams: count={count} seed={seed} modes={modes}")
    with world(folder, seed, **(MODES if modes else {})) as made:
        aeron, other = made.connect(), made.connect()
        # A client is registered with the driver by its first command.
        other.add_counter(1001)
        made.open_checked(aeron)
        made.let_time_out(5_000 * MS)
        before, memory = made.held(), 0
        arrived, epoch, began = 0, 0, time.monotonic()
        while arrived < count:
            arrived += _epoch(made, other, epoch, min(EPOCH, count - arrived))
            after = made.held()
            assert after == before, {key: (before[key], after[key]) for key in before
                                     if before[key] != after[key]}  # fmt: skip
            epoch += 1
            if epoch == 2:
                memory = resident_kib()
            report(
                f"arrived={arrived} seconds={time.monotonic() - began:.0f} "
                f"memory_kib={resident_kib()} mutated={made.transport.counts[transport.MUTATED]} "
                f"replayed={made.transport.counts[transport.REPLAYED]} "
                f"withheld={made.transport.counts[transport.WITHHELD]}"
            )
        if epoch > 2:
            grown = resident_kib() - memory
            assert grown <= GROWTH_KIB_MAX, f"memory grew by {grown} KiB"
        assert not made.errors, made.errors[:3]
    return arrived


def _epoch(made: World, aeron, epoch: int, count: int) -> int:
    made.attacked = made.open(aeron, KINDS, 30_000)
    arrived, turns = 0, 0
    while arrived < count:
        arrived += int(transport.inject(made.links, made.transport, EACH))
        # Steps are mostly short, and sometimes so long that timers expire.
        step_ns = MS if mutation.draw(made.transport.rng, 20) else 150 * MS
        made.turn(int(step_ns))
        turns += 1
        if turns % CHECKED_EVERY == 0:
            made.check_streams()
        assert turns < 100 * count, "no datagrams arrive"
    attacked, made.attacked = made.attacked, []
    for stream in attacked:
        stream.close()
    made.let_time_out()
    made.settle()
    return arrived
