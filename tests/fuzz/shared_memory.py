"""Clients that corrupt their mapped files: logs, positions, and finally every part of cnc.dat.

Checks: the driver keeps running, streams whose files were not touched stay intact, and once the
corrupted streams are closed none of their resources is left. For cnc.dat only the first is checked,
since all clients share it.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from tests.fuzz.world import MS, World, world
from windtunnel.driver.base.atomics import put_i64_release
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.harness.fuzz import mutation
from windtunnel.harness.fuzz.streams import KINDS

EPOCH_TURNS = 400
WRITES = 3
"""Number of writes to each part of a file per turn."""
STREAM_COUNTERS = (1, 2, 3, 4, 5, 9, 12, 13)


def attack(folder: Path, turns: int, seed: int, report: Callable[[str], object] = print) -> int:
    """Corrupt shared memory for a number of turns. Returns the number of writes."""
    report(f"shared memory: turns={turns} seed={seed}")
    with world(folder, seed) as made:
        aeron, other = made.connect(), made.connect()
        other.add_counter(1001)
        made.open_checked(aeron)
        made.let_time_out(5_000 * MS)
        before, writes, done, began = made.held(), 0, 0, time.monotonic()
        while done < turns:
            writes += _epoch(made, other, min(EPOCH_TURNS, turns - done))
            done += EPOCH_TURNS
            after = made.held()
            assert after == before, {key: (before[key], after[key]) for key in before
                                     if before[key] != after[key]}  # fmt: skip
            report(f"writes={writes} seconds={time.monotonic() - began:.0f}")
        writes += _corrupt_everything(made, turns)
    return writes


def _epoch(made: World, aeron, turns: int) -> int:
    known = set(made.folder.rglob("*.logbuffer"))
    made.attacked = made.open(aeron, KINDS, 30_000)
    rng, writes = made.transport.rng, 0
    sessions = {stream.session_id for stream in made.attacked}
    with ExitStack() as stack:
        logs = [LogBuffer.map(path) for path in set(made.folder.rglob("*.logbuffer")) - known]
        for log in logs:
            stack.callback(log.close)
        cnc = open_existing(made.folder, writable=True)
        stack.callback(cnc.close)
        positions = [
            item.counter_id
            for item in aeron.counters
            if item.type_id in STREAM_COUNTERS
            and int.from_bytes(item.key[8:12], "little", signed=True) in sessions
        ]
        for turn in range(turns):
            # Nothing is overwritten in every fourth turn, so that the driver can recover.
            if turn % 4:
                for log in logs:
                    writes += _corrupt_log(rng, log)
                _corrupt_position(rng, cnc.counters_values, positions)
                writes += 1
            made.turn(MS if mutation.draw(rng, 20) else 150 * MS)
            if turn % 50 == 0:
                made.check_streams()
    attacked, made.attacked = made.attacked, []
    for stream in attacked:
        stream.close()
    made.let_time_out()
    made.settle()
    return writes


def _corrupt_log(rng: np.ndarray, log: LogBuffer) -> int:
    mutation.scribble(rng, log.log, 0, log.meta_at, WRITES)
    mutation.scribble(rng, log.log, 0, 4096, WRITES)
    mutation.scribble(rng, log.log, log.meta_at, log.meta_at + 512, WRITES)
    return 3 * WRITES


def _corrupt_position(rng: np.ndarray, values: np.ndarray, positions: list[int]) -> None:
    counter_id = positions[int(mutation.draw(rng, len(positions)))]
    edges = (*mutation.EDGES, *mutation.WIDE_EDGES)
    value = edges[int(mutation.draw(rng, len(edges)))]
    if mutation.draw(rng, 2):
        value = int(counters.get(values, counter_id))
        value += mutation.DELTAS[int(mutation.draw(rng, len(mutation.DELTAS)))]
        value = max(-(1 << 62), min(value, 1 << 62))
    put_i64_release(values, counter_id * counters.COUNTER_LENGTH, value)


def _corrupt_everything(made: World, turns: int) -> int:
    """Corrupt all of cnc.dat; no client works any more, but the driver must keep running."""
    cnc = open_existing(made.folder, writable=True)
    rng, writes = made.transport.rng, 0
    parts = (cnc.to_clients, cnc.counters_metadata, cnc.counters_values, cnc.error_log,
             cnc.to_driver)  # fmt: skip
    # Longer than every timeout: earlier resources must be freed while the file is overwritten.
    for _ in range(max(turns, 1_200)):
        for part in parts:
            mutation.scribble(rng, part, 0, min(part.size, 1 << 17), WRITES)
            mutation.scribble(rng, part, max(0, part.size - 1024), part.size, WRITES)
            writes += 2 * WRITES
        mutation.scribble(rng, cnc.mapping.array, 0, 128, 1)
        made.driver_turn(MS if mutation.draw(rng, 4) else 150 * MS)
    cnc.close()
    return writes
