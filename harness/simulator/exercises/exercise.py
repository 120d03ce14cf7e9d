"""The exercises of a scenario, by name. Each one runs as a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.simulator.exercises import (
    abandoned_claims,
    destinations,
    freed_streams,
    image_ends,
    image_rejection,
    ipc_streams,
    long_terms,
    lost_reader,
    racing_claims,
    responses,
    sessions,
    shut_window,
    spies,
    untethered,
    user_counters,
)
from windtunnel.harness.simulator.exercises.party import Party, Site
from windtunnel.harness.simulator.exercises.scripted import paths, publisher, receiver
from windtunnel.harness.simulator.exercises.waiting import Routine, Waiting
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE
from windtunnel.harness.workload.stop import SubjectError, error_text

ROUTINES: Mapping[str, Callable[[Site], Routine[None]]] = {
    "abandoned-claims": abandoned_claims.abandoned_claims,
    "cool-down": image_ends.cool_down,
    "dying-client": user_counters.dying_client,
    "ended-streams": image_ends.ended_streams,
    "freed-streams": freed_streams.freed_streams,
    "image-ends": image_ends.image_ends,
    "image-rejection": image_rejection.image_rejection,
    "ipc-exclusive": ipc_streams.exclusive,
    "ipc-shared": ipc_streams.shared,
    "long-terms": long_terms.long_terms,
    "lost-reader": lost_reader.lost_reader,
    "racing-claims": racing_claims.racing_claims,
    "receive-destinations": destinations.receive_destinations,
    "responses": responses.responses,
    "returning-session": image_ends.returning_session,
    "scripted-paths": paths.scripted_paths,
    "scripted-publisher": publisher.scripted_publisher,
    "scripted-receiver": receiver.scripted_receiver,
    "scripted-responder": responses.scripted_responder,
    "send-destinations": destinations.send_destinations,
    "sessions": sessions.sessions,
    "shut-window": shut_window.shut_window,
    "spies": spies.spies,
    "untethered": untethered.untethered,
    "user-counters": user_counters.user_counters,
}


class Exercise:
    """A program with clients on two hosts that runs one exercise."""

    role = "exercise"

    def __init__(self, exercise: str, near: Host, far: Host, clock_ns: Callable[[], int]) -> None:
        """Create a program that connects its clients on its first step."""
        self.host, self._far, self._clock_ns = near, far, clock_ns
        self.name = f"{near.name}/exercise-{exercise}"
        self._exercise = exercise
        self._waiting: Waiting | None = None
        self.error = ""
        """The error that ended the exercise, or empty."""

    @property
    def is_done(self) -> bool:
        """Return whether the exercise has ended."""
        return self._waiting is not None and self._waiting.is_over

    def step(self) -> int:
        """Run the exercise until it has to wait.

        Returns AT_ONCE if this step has done anything, or NEVER.
        Raises Unsupported if the driver reports NOT_SUPPORTED.
        """
        if self.error or self.is_done:
            return NEVER
        try:
            if self._waiting is None:
                site = Site(Party(self.host), Party(self.host), Party(self._far))
                self._waiting = Waiting(ROUTINES[self._exercise](site), self._clock_ns)
            return AT_ONCE if self._waiting.step() else NEVER
        except (DriverError, SubjectError) as error:
            if getattr(error, "code", None) == ErrorCode.NOT_SUPPORTED:
                raise Unsupported(str(error)) from error
            self.error = error_text(error)
            return AT_ONCE

    def exit(self, log: str) -> ProcessExit:
        """Return the exit code of the program and its last error."""
        code = int(bool(self.error)) if self.is_done or self.error else None
        return ProcessExit(self.name, self.role, code, code is None, log, self.error)
