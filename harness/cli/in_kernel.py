"""The same `windtunnel run` again, inside a kernel that has what this machine's lacks.

windtunnel run X --kernel uml  --boot-->  windtunnel run X
                              <-- output, run folder, exit code --
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from windtunnel.harness.cli.failure import Failure, one_line

ENGINE_S = 600.0
RUN_S = 300.0
"""Beside a run's own budget: its processes start an order of magnitude more slowly inside."""
WARM_UPS = ("windtunnel.harness.warm_up", "windtunnel.driver.warm_up")
"""Compile what is not compiled yet out here, where there is more than one processor. A failure
shows itself inside, as a slow start at worst."""


def run(files: Sequence[Path], given: Mapping[str, object]) -> int:
    """Make the runs inside and return the inner command's exit code.

    `given` holds the values of all options of `windtunnel run`, by their names in Python.
    """
    from windtunnel.harness.orchestrate.suite import runner

    apart = ("scenario", "kernel", "as_json")
    options = {name: value for name, value in given.items() if name not in apart}
    options["fidelity"] = given["fidelity"] or "netns"
    seed, seeds = given["seed"], given["seeds"]
    with one_line():
        planned = runner.plan(
            files,
            seed if isinstance(seed, int) else None,
            seeds if isinstance(seeds, int) else None,
        )
    budget_s = sum(RUN_S + each.scenario.budget.wall_ns / 1e9 for each in planned)
    switches = ["--json"] if given["as_json"] else []
    words = ["run", *map(str, files), *switches]
    if options["fidelity"] == "compose":
        return _beside_an_engine(words, options, budget_s)
    return command(words, options, budget_s)


def _beside_an_engine(words: Sequence[str], options: Mapping[str, object], budget_s: float) -> int:
    """Take a command that wants containers inside, and with it an engine that has the image."""
    from windtunnel.harness.orchestrate.labs import image_export, image_kernels
    from windtunnel.harness.uml import boot, engine

    with one_line(), boot.own_folder() as folder:
        click.echo("windtunnel: handing the image to the engine inside", err=True)
        kernels = image_kernels.compile_in_folder()
        image = image_export.save_image(folder)
        before = [engine.__name__, str(image), image_kernels.volume_name(), str(kernels)]
        room = Room(before, image_export.DISK_BYTES, engine.MODULES)
        return command(words, options, budget_s + ENGINE_S, room)


@dataclass(frozen=True)
class Room:
    """What a command needs around it, inside."""

    program: Sequence[str] = ()
    """A module of ours and its arguments, which starts the command."""
    disk_bytes: int = 0
    modules: Sequence[str] = ()


def command(
    words: Sequence[str], options: Mapping[str, object], budget_s: float, room: Room = Room()
) -> int:
    """Take a command of ours inside and return its exit code."""
    from windtunnel.harness.cli import exit_code
    from windtunnel.harness.uml import boot, kernel

    try:
        found = kernel.find()
    except kernel.NoKernel as error:
        raise Failure(f"--kernel uml: {error}", exit_code.HARNESS) from error
    argv = [sys.executable, "-m", "windtunnel.harness", *words]
    if room.program:
        argv = [sys.executable, "-m", *room.program, *argv]
    for name, value in options.items():
        if value is not None:
            argv += [f"--{name}", str(value)]
    boot.finish([[sys.executable, "-m", each] for each in WARM_UPS])
    click.echo(f"windtunnel: starting kernel {found.release} from {found.program}", err=True)
    try:
        ordered = boot.Command(argv, boot.BOOT_TIMEOUT_S + budget_s, room.disk_bytes, room.modules)
        return boot.run(found, ordered)
    except boot.BootError as error:
        raise Failure(f"--kernel uml: {error}", exit_code.HARNESS) from error
