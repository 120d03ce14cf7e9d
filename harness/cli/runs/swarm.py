"""`windtunnel swarm`: trials on virtual time, each with a configuration that its seed chooses."""

from pathlib import Path

import click

SABOTAGES = ("flip-byte", "lying-counter", "wide-window", "never-heal")


@click.command(short_help="Make many simulated trials, each chosen by its seed.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the first trial.")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1_000, show_default=True, help="How many trials."
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Begin no trial after this time.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1, max=256), default=1, show_default=True, help="Processes."
)
@click.option(
    "--frames",
    type=click.IntRange(min=20, max=20_000),
    help="About how many frames a trial has.  [default: the seed's choice]",
)
@click.option(
    "--sabotage",
    type=click.Choice(SABOTAGES),
    help="Do this harm in every trial, to see that it is noticed.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Make the first bad trial again, or the only one there is, as a run folder.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines: one a trial, one at the end.")
def swarm(
    seed: int,
    seeds: int,
    minutes: float | None,
    jobs: int,
    frames: int | None,
    sabotage: str | None,
    keep: Path | None,
    as_json: bool,
) -> int:
    """Make trials with the seeds from SEED on, on virtual time.

    Each seed chooses streams, configuration, traffic and faults. First the faults are at work and
    nothing wrong may happen; then all is healed and every stream must come to its end. A trial in
    which anything is wrong is printed with the command that makes it again. A stall that is the
    protocol's own is counted by itself and is no violation.

    \b
      windtunnel swarm --seeds 2000 --jobs 2
      windtunnel swarm --seed 4711 --seeds 1 --keep runs/4711

    Exit codes: 0 nothing wrong, 1 something is, 3 a defect of the simulator.
    """
    from windtunnel.harness.artifact.regular_file import real_path
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.orchestrate.swarm import run_swarm

    arguments = ["--seed", str(seed), "--seeds", str(seeds), "--jobs", str(jobs)]
    for name, value in (
        ("--minutes", minutes),
        ("--frames", frames),
        ("--sabotage", sabotage),
        ("--keep", None if keep is None else real_path(keep)),
    ):
        if value is not None:
            arguments += [name, str(value)]
    if as_json:
        arguments.append("--json")
    with one_line():
        return run_swarm(arguments, Path("runs"))
