"""Writes the run folder of a swarm trial that is repeated for inspection.

    case.json  run.json  decisions.bin  ledger.json  simulation.json  captures/  hosts/<host>/

Recording does not change the trial, because its world is not affected. Delivered messages are not
written, since the audit compares them in memory.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.relay.report import DecisionLog
from windtunnel.harness.simulator.output.accounts import ledger, write_simulation
from windtunnel.harness.simulator.output.capture import Captures
from windtunnel.harness.simulator.output.counter_samples import CounterSamples
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld

TAPE_BYTES = 16 << 20


class TrialObserver:
    """The base class of observers of a swarm trial. It does nothing, and its subclass `TrialFolder`
    records the trial.
    """

    tape_length = 0

    def open(self, world: SimulatedWorld) -> None:
        """Begin to record a trial. Called after the simulated world has been created."""

    def look(self, world: SimulatedWorld) -> None:
        """Record the current state of the trial. Called repeatedly while the trial runs."""

    def drain(self, world: SimulatedWorld) -> None:
        """Save the recorded datagrams and decisions. Called before they are discarded."""

    def close(self, world: SimulatedWorld) -> None:
        """Complete the recording of the trial. Called before the simulated world is closed."""


NO_OBSERVER = TrialObserver()


class TrialFolder(TrialObserver):
    """Records a trial in a run folder."""

    tape_length = TAPE_BYTES

    def __init__(self, path: Path) -> None:
        self.folder = RunDir(path)
        self.folder.make()

    def open(self, world: SimulatedWorld) -> None:
        names = [each.name for each in world.case.hosts]
        world.case.write(self.folder.case)
        self._captures = Captures(self.folder, names, world.between.events)
        self._decisions = DecisionLog(self.folder.decisions, EPOCH_NS)
        self._samples = [CounterSamples(each, self.folder.host(each.name)) for each in world.hosts]

    def look(self, world: SimulatedWorld) -> None:
        for each in self._samples:
            each.look(EPOCH_NS + world.now_ns)

    def drain(self, world: SimulatedWorld) -> None:
        self._captures.drain()
        self._decisions.drain(world.between.engine)

    def close(self, world: SimulatedWorld) -> None:
        self.drain(world)
        self._captures.close()
        self._decisions.close()
        for each in self._samples:
            each.close(EPOCH_NS + world.now_ns)
        ledger(world).write(self.folder.ledger)
        write_simulation(world, self.folder)

    def conclude(self, seed: int, violation: str, command: list[str]) -> None:
        """Write the manifest of the trial, and the command that repeats the trial."""
        self.folder.repro.write_text(shlex.join(command) + "\n")
        Manifest(
            run_id=f"swarm/{seed}",
            scenario="swarm",
            seed=seed,
            fidelity="sim",
            command=command,
            stopped=violation,
            complete=not violation,
        ).write(self.folder.manifest)
