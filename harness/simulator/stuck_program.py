"""Determines which program of a simulated run runs forever, and describes it.

the world: which part of which host     conductor, sender, receiver: the host's driver
                                        client: a program of the host
the applications: which takes a step    the application, if it is in the client's code
anything else                           None: the harness
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from windtunnel.harness.artifact.run.simulation import STUCK
from windtunnel.harness.simulator.applications.application_set import ApplicationSet
from windtunnel.harness.simulator.applications.archive_program import ArchiveProgram
from windtunnel.harness.simulator.applications.programs import Application, DriverProgram
from windtunnel.harness.simulator.blame import is_drivers_file
from windtunnel.harness.simulator.exercises.exercise import Exercise
from windtunnel.harness.simulator.world.virtual_time import START_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld

_CLIENT = "client"


def stuck_program(
    world: SimulatedWorld, programs: ApplicationSet, frame: FrameType | None, cpu_s: float
) -> tuple[DriverProgram | ArchiveProgram | Application | Exercise | None, str]:
    """Return the program that has not ended its turn, or None if it is the harness, and a text.

    `frame` is where the simulation's thread is, and `cpu_s` the CPU time that it has used there.
    """
    part = world.running_part
    program: DriverProgram | ArchiveProgram | Application | Exercise | None = None
    client = ""
    if part is not None and part[1] != _CLIENT:
        program = next(each for each in programs.drivers[::-1] if each.host.name == part[0])
    elif part is not None:
        of_host = [each for each in programs.running if each.host.name == part[0]]
        program = of_host[0] if of_host else None
    elif programs.stepping is not None and any(_drivers_places(frame)):
        program = programs.stepping
        is_archive = isinstance(program, ArchiveProgram)
        client = program.name if is_archive else f"the client of {program.name}"
    return program, describe_stuck_part(world, frame, cpu_s, client)[1]


def describe_stuck_part(
    world: SimulatedWorld, frame: FrameType | None, cpu_s: float, client: str = "a client"
) -> tuple[bool, str]:
    """Return whether the part of the world that has not ended its turn is under test, and a text.

    `client` names the program to which the driver's Python code belongs outside the parts of the
    world, or is empty if that code does not belong to a program.
    """
    part = world.running_part
    place = next(_drivers_places(frame), "")
    what = client if place else ""
    if part is not None:
        host, name = part
        what = "a client" if name == _CLIENT else f"the {name} of the driver"
        what += f" on host {host}"
    at_s = (world.now_ns - START_NS) / 1e9
    text = (
        f"{what or 'the simulator'} did not end its turn: {cpu_s:.0f} s of CPU time "
        f"at virtual time {at_s:.6f} s"
    )
    return bool(what), text + (f", in {place}" if place else "")


def end_stuck_process(world: SimulatedWorld, cpu_s: float, frame: FrameType | None) -> None:
    """End the process of a trial, because code in it runs forever.

    Code under test ends it with SIGABRT, like a real driver that does so.
    """
    is_under_test = False
    try:
        is_under_test, text = describe_stuck_part(world, frame, cpu_s)
        print(text, flush=True)
    finally:
        if is_under_test:
            os.abort()
        os._exit(STUCK)


def _drivers_places(frame: FrameType | None) -> Iterator[str]:
    """Yield the places in the driver's or client's Python code where a thread is, the innermost
    first.
    """
    while frame is not None:
        file = frame.f_code.co_filename
        if is_drivers_file(file):
            yield f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
