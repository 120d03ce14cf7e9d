"""Determines which program of a simulated run works without end, and describes it.

the world: which part of which host     conductor, sender, receiver: the host's driver
                                        client: a program of the host
the applications: which takes a step    the application, if it is in the client's code
anything else                           None: the harness
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from windtunnel.harness.simulator.applications.application_set import ApplicationSet
from windtunnel.harness.simulator.applications.programs import Application, DriverProgram
from windtunnel.harness.simulator.blame import is_drivers_file
from windtunnel.harness.simulator.world.virtual_time import START_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld

_CLIENT = "client"


def stuck_program(
    world: SimulatedWorld, programs: ApplicationSet, frame: FrameType | None, cpu_s: float
) -> tuple[DriverProgram | Application | None, str]:
    """Return the program that has not ended its turn, or None if it is the harness, and a text.

    `frame` is where the simulation's thread is, and `cpu_s` the CPU time that it has used there.
    """
    part = world.running_part
    place = next(_drivers_places(frame), "")
    program: DriverProgram | Application | None = None
    what = "the simulator"
    if part is not None and part[1] != _CLIENT:
        host, agent = part
        program = next(each for each in programs.drivers[::-1] if each.host.name == host)
        what = f"the {agent} of the driver on host {host}"
    elif part is not None:
        of_host = [each for each in programs.living if each.host.name == part[0]]
        program = of_host[0] if of_host else None
        what = f"a client on host {part[0]}"
    elif programs.stepping is not None and place:
        program = programs.stepping
        what = f"the client of {program.name}"
    at_s = (world.now_ns - START_NS) / 1e9
    text = f"{what} did not end its turn: {cpu_s:.0f} s of CPU time at virtual time {at_s:.6f} s"
    return program, text + (f", in {place}" if place else "")


def _drivers_places(frame: FrameType | None) -> Iterator[str]:
    """Yield the places in the driver's or client's Python code where a thread is, the innermost
    first.
    """
    while frame is not None:
        file = frame.f_code.co_filename
        if is_drivers_file(file):
            yield f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
