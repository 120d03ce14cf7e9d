"""`windtunnel swarm`: runs simulated trials with random configurations, one per seed."""

from pathlib import Path

import click

from windtunnel.harness.cli.options import SEED, NumberRange

DRIVERS = ("ours", "pyaeron", "mixed")
OWN_BUILD = "aeronmd-lib:"
SABOTAGES = ("flip-byte", "lying-counter", "wide-window", "never-heal")


class DriverChoice(click.ParamType):  # type: ignore[type-arg]  # generic in newer click
    """The name of a choice of drivers, or the path of a library after `aeronmd-lib:`."""

    name = "driver"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(DRIVERS)}|{OWN_BUILD}PATH]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value.startswith(OWN_BUILD):
            path = Path(value.removeprefix(OWN_BUILD))
            if not path.is_file():
                self.fail(f"{path}: expected the library of Aeron's C driver, found no file")
            return f"{OWN_BUILD}{path.resolve()}"
        if value not in DRIVERS:
            self.fail(f"expected {', '.join(DRIVERS)} or {OWN_BUILD}PATH, found {value!r}")
        return value


@click.command(short_help="Run random simulated trials, one for each seed.")
@click.option("--seed", type=SEED, default=0, help="Seed of the first trial.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Number of trials.",
)
@click.option(
    "--minutes",
    type=NumberRange(min=0, min_open=True),
    help="Stop starting new trials after this many minutes.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    default=1,
    show_default=True,
    help="Number of parallel processes.",
)
@click.option(
    "--frames",
    type=click.IntRange(min=20, max=20_000),
    help="Approximate number of frames in a trial.  [default: random]",
)
@click.option(
    "--sabotage",
    type=click.Choice(SABOTAGES),
    help="Make a driver misbehave in this way in every trial, to verify that this is detected.",
)
@click.option(
    "--recovery-modes",
    is_flag=True,
    help="Give some streams Windtunnel's modes of loss recovery (windtunnel.nak-all-gaps, "
    "retransmit-ranges, gap-fill-*), at the sender, the receiver or both.",
)
@click.option(
    "--driver",
    type=DriverChoice(),
    default="ours",
    show_default=True,
    help="Drivers of the two hosts: Windtunnel's; the real C driver of the package pyaeron, or of "
    "your own build of Aeron, on both; or pyaeron's on one of them, chosen by the seed (mixed).",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Run each trial with Windtunnel's driver, too, and report the figures that differ: "
    "frames by type, retransmissions, errors, duration.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Rerun the first failed trial (or the trial, if there is only one) and store it as a run "
    "folder. If no trial of several failed, nothing is stored. With --compare, the trial with "
    "Windtunnel's driver is stored next to it, in DIRECTORY-ours.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON lines: one per trial, and one at the end."
)
def swarm(
    seed: int,
    seeds: int,
    minutes: float | None,
    jobs: int,
    frames: int | None,
    sabotage: str | None,
    recovery_modes: bool,
    driver: str,
    compare: bool,
    keep: Path | None,
    as_json: bool,
) -> int:
    """Run simulated trials in virtual time with consecutive seeds, starting with --seed.

    A trial's seed determines its streams, configuration, traffic and faults. While faults are
    active, no check may be violated. After the faults end, every stream must complete. For a failed
    trial, the command that repeats it is printed. Stalls that the protocol permits are counted
    separately and are not violations.

    \b
      windtunnel swarm --seeds 2000 --jobs 2
      windtunnel swarm --seed 4711 --seeds 1 --keep runs/4711
      windtunnel swarm --driver pyaeron --seeds 2000 --jobs 2
      windtunnel swarm --driver pyaeron --seeds 2000 --compare

    A trial whose process dies in a driver's native code, or because a driver runs forever, is
    a violation, and the other trials continue.

    Exit codes: 0 no violation; 1 a violation; 3 a defect of the simulator, or the folder of --keep
    cannot be written; 127 the real driver's library cannot be used.
    """
    from windtunnel.harness.artifact.regular_file import real_path
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.orchestrate.swarm import run_swarm

    if recovery_modes and driver != "ours":
        raise click.UsageError(
            f"--recovery-modes: expected --driver ours, found {driver}: Aeron's driver does not "
            "have these modes"
        )
    arguments = ["--seed", str(seed), "--seeds", str(seeds), "--jobs", str(jobs)]
    arguments += ["--driver", driver]
    if compare:
        if driver == "ours":
            raise click.UsageError(
                "--compare: expected --driver pyaeron, mixed or aeronmd-lib:PATH, found ours: "
                "figures are compared with those of ours"
            )
        arguments.append("--compare")
    for name, value in (
        ("--minutes", minutes),
        ("--frames", frames),
        ("--sabotage", sabotage),
        ("--keep", None if keep is None else real_path(keep)),
    ):
        if value is not None:
            arguments += [name, str(value)]
    if recovery_modes:
        arguments.append("--recovery-modes")
    if as_json:
        arguments.append("--json")
    with one_line():
        return run_swarm(arguments, Path("runs"))
