"""The same `windtunnel run` again, inside a kernel that has what this machine's lacks.

windtunnel run X --kernel uml  --boot-->  windtunnel run X
                              <-- output, run folder, exit code --
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from harness.cli.failure import Failure, one_line

BOOT_S = 180.0
RUN_S = 300.0
"""Beside a run's own budget: its processes start an order of magnitude more slowly inside."""
WARM_UPS = ("harness.warm_up", "driver.warm_up")
"""Compile what is not compiled yet out here, where there is more than one processor. A failure
shows itself inside, as a slow start at worst."""


def run(files: Sequence[Path], given: Mapping[str, object]) -> int:
    """Make the runs inside and return the inner command's exit code.

    `given` holds the values of all options of `windtunnel run`, by their names in Python.
    """
    from harness.orchestrate import runner

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
    return command(["run", *map(str, files), *switches], options, budget_s)


def command(words: Sequence[str], options: Mapping[str, object], budget_s: float) -> int:
    """Take a command of ours inside and return its exit code."""
    from harness.cli import exit_code
    from harness.uml import boot, kernel

    try:
        found = kernel.find()
    except kernel.NoKernel as error:
        raise Failure(f"--kernel uml: {error}", exit_code.HARNESS) from error
    argv = [sys.executable, "-m", "harness", *words]
    for name, value in options.items():
        if value is not None:
            argv += [f"--{name}", str(value)]
    boot.finish([[sys.executable, "-m", each] for each in WARM_UPS])
    click.echo(f"windtunnel: starting kernel {found.release} from {found.program}", err=True)
    try:
        return boot.run(found, boot.Command(argv, BOOT_S + budget_s))
    except boot.BootError as error:
        raise Failure(f"--kernel uml: {error}", exit_code.HARNESS) from error
