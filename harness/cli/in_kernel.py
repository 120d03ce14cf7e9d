"""Executes a command in User Mode Linux, for kernel features that the host's kernel lacks.

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
"""Additional time allowed for each run in seconds. Processes start about ten times more slowly in
User Mode Linux."""
WARM_UPS = ("windtunnel.harness.warm_up", "windtunnel.driver.warm_up")
"""Programs that compile missing numba kernels (compiled functions) on the host, which has more than
one processor. If they fail, these kernels are compiled in User Mode Linux, which delays the start.
"""


def run(files: Sequence[Path], values: Mapping[str, object]) -> int:
    """Execute `windtunnel run` in User Mode Linux and return its exit code.

    `values` maps the parameter names of `windtunnel run` to their values.
    """
    from windtunnel.harness.orchestrate.suite import runner

    excluded = ("scenario", "kernel", "as_json")
    options = {name: value for name, value in values.items() if name not in excluded}
    options["fidelity"] = values["fidelity"] or "netns"
    settings = options["set"] = options.pop("settings")
    seed, seeds = values["seed"], values["seeds"]
    with one_line():
        planned = runner.plan(
            files,
            seed if isinstance(seed, int) else None,
            seeds if isinstance(seeds, int) else None,
            allow_commands=values["allow_commands"] is True,
            settings=settings if isinstance(settings, Mapping) else {},
        )
    budget_s = sum(RUN_S + each.scenario.budget.wall_ns / 1e9 for each in planned)
    flags = ["--json"] if values["as_json"] else []
    arguments = ["run", *map(str, files), *flags]
    if options["fidelity"] == "compose":
        return _with_engine(arguments, options, budget_s)
    return command(arguments, options, budget_s)


def _with_engine(arguments: Sequence[str], options: Mapping[str, object], budget_s: float) -> int:
    """Execute a command that needs containers in User Mode Linux. A Docker engine with Windtunnel's
    image is started there first.
    """
    from windtunnel.harness.orchestrate.labs import image_export, image_kernels
    from windtunnel.harness.uml import boot, engine

    with one_line(), boot.own_folder() as folder:
        click.echo(
            "windtunnel: exporting the container image for the engine in User Mode Linux", err=True
        )
        kernels = image_kernels.compile_in_folder()
        image = image_export.save_image(folder)
        launcher = [engine.__name__, str(image), image_kernels.volume_name(), str(kernels)]
        environment = Environment(launcher, image_export.DISK_BYTES, engine.MODULES)
        return command(arguments, options, budget_s + ENGINE_S, environment)


@dataclass(frozen=True)
class Environment:
    """Additional requirements of a command in User Mode Linux: a program that launches the command,
    an additional disk, and kernel modules.
    """

    launcher: Sequence[str] = ()
    """The Python module that starts the command, and its arguments. Empty if the command is started
    directly.
    """
    disk_bytes: int = 0
    """Size of an additional disk, or 0 for none."""
    modules: Sequence[str] = ()
    """Kernel modules to load."""


def command(
    arguments: Sequence[str],
    options: Mapping[str, object],
    budget_s: float,
    environment: Environment = Environment(),
) -> int:
    """Execute a `windtunnel` command in User Mode Linux and return its exit code."""
    from windtunnel.harness.cli import exit_code
    from windtunnel.harness.uml import boot, kernel

    try:
        found = kernel.find()
    except kernel.NoKernel as error:
        raise Failure(f"--kernel uml: {error}", exit_code.HARNESS) from error
    argv = [sys.executable, "-m", "windtunnel.harness", *arguments]
    if environment.launcher:
        argv = [sys.executable, "-m", *environment.launcher, *argv]
    for parameter, value in options.items():
        name = parameter.replace("_", "-")
        if isinstance(value, bool):
            argv += [f"--{name}"] if value else []
        elif isinstance(value, Mapping):
            argv += [word for each in value.items() for word in (f"--{name}", "=".join(each))]
        elif value is not None:
            argv += [f"--{name}", str(value)]
    boot.finish([[sys.executable, "-m", each] for each in WARM_UPS])
    click.echo(f"windtunnel: starting kernel {found.release} from {found.program}", err=True)
    try:
        timeout_s = boot.BOOT_TIMEOUT_S + budget_s
        return boot.run(
            found,
            boot.Command(argv, timeout_s, environment.disk_bytes, environment.modules),
        )
    except boot.BootError as error:
        raise Failure(f"--kernel uml: {error}", exit_code.HARNESS) from error
