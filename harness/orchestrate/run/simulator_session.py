"""Simulated runs one after the other from one process, which is at once with the next.

    with Stage(order) as stage:
        make_run(order, tell, cancellation, on_made, stage.begin)        again and again

All runs have the same addresses, so equal cases have equal events. The process and its directory in
memory go with the stage; a stage that is killed is cleaned up by its keeper.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import MID, Lab, LabError, LabProcess
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes.process import Companion, tail_of
from windtunnel.harness.orchestrate.processes.watch import RunFailed
from windtunnel.harness.orchestrate.run.one_run import lab_of
from windtunnel.harness.orchestrate.run.phases import READY_TIMEOUT_S, Run, Tell
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulation import (
    SLOWNESS_MAX,
    SimulatedRun,
    planted_variables,
)
from windtunnel.harness.orchestrate.subjects.subject import Pair

END_TIMEOUT_S = 5.0


class SimulatorSession:
    """The process, and the lab that lasts as long as it does."""

    def __init__(self, order: RunSpec) -> None:
        """Nothing is started yet; `order` is that of the first run."""
        self.lab = lab_of(order)
        self._process: Companion | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> SimulatorSession:
        self.lab.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()
        self.lab.down()

    def begin(self, order: RunSpec, tell: Tell) -> tuple[Lab, Run]:
        """The lab and the run of an order, for `make_run`."""
        lab = _Borrowed(self.lab)
        return lab, _StagedRun(order, lab, tell, self)

    def play(self, order: RunSpec, limit_s: float) -> int:
        """Make a run's traffic. Returns its exit code; RunFailed if the process does not answer."""
        folder = order.folder
        if self._connection is None:
            self._start(order.tested)
        assert self._connection is not None
        try:
            self._connection.send((str(folder.case), str(folder.path), order.sabotage))
            if self._connection.poll(limit_s):
                return int(self._connection.recv())
        except (EOFError, OSError) as error:
            self._end()
            raise RunFailed(f"the simulator died: {_last_words(order)}", ours=True) from error
        except BaseException:
            # It is in the middle of a run, and its answer would be taken for that of the next.
            self._end()
            raise
        self._end()
        text = f"the simulator is still at work after {limit_s:g} s of real time"
        raise RunFailed(text, ours=True)

    def _start(self, tested: Pair) -> None:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-m", "windtunnel.harness.simulator", "serve"]
        argv += ["--fd", str(theirs.fileno()), "--memory", self.lab.shared_memory(MID)]
        variables = {**environment(), **planted_variables(tested)}
        self._process = Companion(argv, env=variables, cwd=ROOT, keep=theirs.fileno())
        theirs.close()
        self._connection = Connection(ours.detach())

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.terminate()
            self._process.end(END_TIMEOUT_S)
            self._process = None


class _StagedRun(SimulatedRun):
    """A simulated run whose traffic is the stage's affair."""

    def __init__(self, order: RunSpec, lab: Lab, tell: Tell, stage: SimulatorSession) -> None:
        super().__init__(order, lab, tell)
        self._stage = stage

    def _simulate(self) -> None:
        limit_s = READY_TIMEOUT_S + SLOWNESS_MAX * self.order.scenario.budget.wall_ns / 1e9
        code = self._stage.play(self.order, limit_s)
        words = _last_words(self.order)
        self._conclude(code, words, f"the simulator ended with exit code {code}: {words}")


def _last_words(order: RunSpec) -> str:
    return tail_of(order.folder.simulator_log, 1)


class _Borrowed:
    """A lab that stays when a run ends; see `Lab` for what its methods promise."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.name = lab.name

    def up(self) -> None:
        """It is up."""

    def down(self) -> None:
        """It stays up for the next run."""

    def address(self, host: str) -> str:
        return self._lab.address(host)

    def interface(self, host: str) -> str:
        return self._lab.interface(host)

    def mid_interfaces(self) -> tuple[str, ...]:
        return self._lab.mid_interfaces()

    def python(self, place: str) -> str:
        return self._lab.python(place)

    def shared_memory(self, host: str) -> str:
        return self._lab.shared_memory(host)

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LabProcess:
        raise LabError(f"{place}: a staged run starts no process of its own")

    def path(self, path: Path) -> str:
        return self._lab.path(path)

    def read(self, place: str, path: str) -> bytes:
        return self._lab.read(place, path)
