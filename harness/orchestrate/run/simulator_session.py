"""A simulator process that executes several simulated runs without being restarted.

    with SimulatorSession(spec) as session:
        execute_run(spec, emit, cancellation, on_result, session.begin)        repeatedly

All runs have the same addresses, so equal scenarios with equal seeds lead to equal events. The
process and its in-memory directory are removed with the session. If the session is killed, the
cleanup watchdog removes them.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection

from windtunnel.harness.artifact.run.simulation import SUBJECT_FAILED
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import MID, Lab
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes.process import HelperProcess, tail_of
from windtunnel.harness.orchestrate.processes.watch import RunFailed
from windtunnel.harness.orchestrate.run.one_run import make_lab
from windtunnel.harness.orchestrate.run.phases import READY_TIMEOUT_S, Emit, Run
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.simulation import (
    SLOWNESS_MAX,
    SimulatedRun,
    mutant_variables,
)
from windtunnel.harness.orchestrate.subjects.subject import Pair

END_TIMEOUT_S = 5.0


class SimulatorSession:
    """A simulator process and its lab, for several runs."""

    def __init__(self, spec: RunSpec) -> None:
        """Create the lab for a session. The simulator process starts with the first run."""
        self.lab = make_lab(spec)
        self._process: HelperProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> SimulatorSession:
        self.lab.up()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self.lab.down()

    def begin(self, spec: RunSpec, emit: Emit) -> Run:
        """Return a run that uses the session's lab and simulator process."""
        return _SessionRun(spec, self.lab, emit, self)

    def simulate(self, spec: RunSpec, limit_s: float, real: Sequence[str]) -> int:
        """Simulate the traffic of a run, and return the exit code.

        The exit code is negative if a signal ended the process. Raises RunFailed if the process
        exceeds `limit_s`, or ends in another way without having described the run.
        """
        folder = spec.folder
        if self._connection is None:
            self._start(spec.tested)
        assert self._connection is not None
        try:
            self._connection.send((str(folder.case), str(folder.path), spec.sabotage, tuple(real)))
            if self._connection.poll(limit_s):
                return int(self._connection.recv())
        except (EOFError, OSError) as error:
            code = self._end(is_ending=True)
            if code < 0 or (code == SUBJECT_FAILED and spec.folder.simulation.exists()):
                # A signal ended it, or itself, because a program under test runs forever.
                return code
            raise RunFailed(
                f"the simulator ended: {_last_log_line(spec)}", harness_fault=True
            ) from error
        except BaseException:
            # The process is in the middle of a run. Its response would be mistaken for the next
            # run's.
            self._end()
            raise
        self._end()
        text = f"the simulator is still running after {limit_s:g} s of real time"
        raise RunFailed(text, harness_fault=True)

    def _start(self, tested: Pair) -> None:
        own_socket, child_socket = socket.socketpair()
        argv = [sys.executable, "-m", "windtunnel.harness.simulator", "serve"]
        argv += ["--fd", str(child_socket.fileno()), "--memory", self.lab.shared_memory(MID)]
        variables = {**environment(), **mutant_variables(tested)}
        self._process = HelperProcess(argv, env=variables, cwd=ROOT, keep=child_socket.fileno())
        child_socket.close()
        self._connection = Connection(own_socket.detach())

    def _end(self, *, is_ending: bool = False) -> int:
        """Close the connection to the simulator, wait until it ends, and return its exit code. If
        `is_ending` is false, also send SIGTERM.
        """
        code = 0
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            if not is_ending:
                self._process.terminate()
            code = self._process.end(END_TIMEOUT_S)
            self._process = None
        return code


class _SessionRun(SimulatedRun):
    """A run whose traffic is simulated by a session's process, and which leaves its lab in place
    for the next run.
    """

    def __init__(self, spec: RunSpec, lab: Lab, emit: Emit, session: SimulatorSession) -> None:
        super().__init__(spec, lab, emit)
        self._session = session

    def _up(self) -> None:
        """Do nothing, because the lab is already up."""

    def take_down(self) -> None:
        self._phase("down", lambda: None)

    def _simulate(self) -> None:
        limit_s = READY_TIMEOUT_S + SLOWNESS_MAX * self.spec.scenario.budget.wall_ns / 1e9
        code = self._session.simulate(self.spec, limit_s, self.real_hosts)
        last_line = _last_log_line(self.spec)
        self._conclude(code, last_line, f"the simulator ended with exit code {code}: {last_line}")


def _last_log_line(spec: RunSpec) -> str:
    return tail_of(spec.folder.simulator_log, 1)
