"""`windtunnel envelope`: measures what sound drivers do in scenarios, as limits for the judge."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.failure import one_line
from windtunnel.harness.cli.options import SEED, out_option
from windtunnel.harness.cli.render.table import echo

if TYPE_CHECKING:
    from windtunnel.harness.orchestrate.suite.suite import RunSummary

SEEDS_MAX = 1_000


def _drivers(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> dict[str, int]:
    """Parse `PEER=SEEDS` options (click callback)."""
    found = {}
    for each in value:
        peer, _sign, seeds = each.rpartition("=")
        if not peer or not seeds.isdecimal() or not 1 <= int(seeds) <= SEEDS_MAX:
            expected = f"expected PEER=SEEDS with 1 to {SEEDS_MAX} seeds"
            raise click.BadParameter(f"{expected}, found {each!r}")
        found[peer] = int(seeds)
    return found


@click.command(short_help="Measure what sound drivers do in scenarios, as limits for the judge.")
@click.argument("scenario", nargs=-1, shell_complete=scenarios.complete)
@click.option(
    "--driver",
    "drivers",
    metavar="PEER=SEEDS",
    multiple=True,
    callback=_drivers,
    default=("ours=14", "pyaeron=10"),
    show_default=True,
    help="A driver on all hosts, and its number of seeds. May be repeated.",
)
@click.option("--seed", type=SEED, default=1, show_default=True, help="First seed.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs in parallel."
)
@out_option("Folder for the runs that do not count.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: the one with which the judge compares]",
)
def envelope(
    scenario: tuple[str, ...],
    drivers: dict[str, int],
    seed: int,
    jobs: int,
    out: Path,
    file: Path | None,
) -> int:
    """Simulate scenarios with drivers that are known to be sound, and write the range of each
    figure: NAKs of a gap, bytes resent for each byte lost, repair time, status messages, median
    latency and goodput.

    SCENARIO is the name or the path of a scenario; without any, all that support `sim` are
    simulated. The judge compares each simulated run of these scenarios with the written file: a
    figure far outside of its range is a FAIL of `within_envelope`. Only runs that pass all other
    checks count. The file contains the seeds and the versions of the drivers, and keeps the
    envelopes of other scenarios.
    """
    from windtunnel.harness.orchestrate.fidelity import SIM
    from windtunnel.harness.orchestrate.scenario_file import supporting
    from windtunnel.harness.orchestrate.subjects import peers
    from windtunnel.harness.orchestrate.suite.envelope_runs import EnvelopeRuns
    from windtunnel.harness.verdict.checks.envelope.bands import FILE

    with one_line():
        files = _simulated(scenarios.find_all(scenario)) if scenario else supporting(SIM)
        for peer in drivers:
            peers.find(peer, SIM, out)
        runs = EnvelopeRuns(seed, max(drivers.values()))
        chosen = counted(len(files), "scenario")
        click.echo(f"{chosen}, {counted(sum(drivers.values()), 'run')} of each", err=True)
        runs.measure(files, drivers, jobs=jobs, out=out, on_round=_print_round)
        click.echo(f"wrote {runs.write(file or FILE)} envelopes to {file or FILE}")
    return exit_code.OK


def _simulated(files: Sequence[Path]) -> list[Path]:
    """Return the files of scenarios that support simulations, and name the others on stderr. Raises
    UsageError if none is left: no run would count.
    """
    from windtunnel.harness.orchestrate.fidelity import SIM
    from windtunnel.harness.orchestrate.scenario_file import load_runnable

    found = []
    for file in files:
        supported = load_runnable(file).fidelity
        if SIM in supported:
            found.append(file)
        else:
            text = f"{file}: expected a scenario that supports sim, found {', '.join(supported)}"
            if len(files) == 1:
                raise click.UsageError(text)
            echo(f"left out: {text}", err=True)
    if not found:
        raise click.UsageError("expected a scenario that supports sim, found none")
    return found


def _print_round(peer: str, seed: int, count: int, others: "list[RunSummary]") -> None:
    verb = "counts" if count == 1 else "count"
    click.echo(f"{peer} seed {seed}: {counted(count, 'run')} {verb}", err=True)
    for each in others:
        echo(f"  {each.outcome} {each.scenario}: {each.reason}", err=True)
