"""`windtunnel run`: executes scenarios, judges the runs, and writes the report."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from windtunnel.harness.cli import failure, in_kernel, scenarios
from windtunnel.harness.cli.options import (
    SEED,
    SEEDS,
    InputFile,
    kernel_option,
    name_values,
    out_option,
    payload_option,
)
from windtunnel.harness.cli.runs.ci_files import ci_options
from windtunnel.harness.cli.runs.run_output import print_suite, write_files

if TYPE_CHECKING:
    from windtunnel.harness.orchestrate.fidelity import Fidelity
    from windtunnel.harness.orchestrate.subjects.subject import Pair
    from windtunnel.harness.scenario.known import KnownFailure
    from windtunnel.harness.scenario.resolved.link_case import Backend
    from windtunnel.harness.scenario.schema.model import Scenario


@click.command(short_help="Run scenarios, judge the runs, and write an HTML report.")
@click.argument("scenario", nargs=-1, shell_complete=scenarios.complete)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "compose", "sim"]),
    help="Use network namespaces, containers or a simulation.  "
    "[default: compose if a Docker engine responds, else netns, if all scenarios support it]",
)
@click.option(
    "--seed",
    type=SEED,
    help="Seed of the first run.  [default: from the scenario]",
)
@click.option(
    "--seeds",
    type=SEEDS,
    help="Number of runs of each scenario, with consecutive seeds.  [default: from the scenario]",
)
@payload_option
@out_option("Parent folder of the suite folder.")
@click.option(
    "--sabotage",
    metavar="NAME",
    help="Make Windtunnel's driver misbehave in this way, to verify that the judge detects it.",
)
@click.option(
    "--mutant",
    metavar="NAME",
    help="Plant this defect in Windtunnel's driver, to verify that the judge detects it. "
    "`windtunnel exam --list` lists all defects.",
)
@click.option(
    "--backend",
    type=click.Choice(["relay", "netem"]),
    help="Backend that applies link impairments.  [default: from the scenario]",
)
@click.option(
    "--receive",
    multiple=True,
    callback=name_values,
    metavar="NAME=VALUE",
    help="Set this channel parameter of all subscriptions. Can be repeated.  [default: from the "
    "scenario]",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=name_values,
    metavar="NAME=VALUE",
    help="Set this value of all scenarios: an impairment of all links such as loss=5%, or a path "
    "such as applications.feed.env.RATE=100. Can be repeated.",
)
@kernel_option
@click.option(
    "--publisher",
    metavar="PEER",
    default="ours",
    help="Driver on the publisher's host: ours, pyaeron, java, aeronmd:/path or image:NAME.  "
    "[default: ours]",
)
@click.option(
    "--subscriber",
    metavar="PEER",
    default="ours",
    help="Driver on the subscriber's host, with the same choices.  [default: ours]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    default=1,
    help="Number of parallel runs.  [default: 1]",
)
@click.option(
    "--known",
    type=InputFile("a YAML file with known failures"),
    metavar="FILE",
    help="YAML file that lists known failures. They are reported but do not affect the exit code.",
)
@click.option(
    "--allow-commands",
    is_flag=True,
    help="Start the programs that the scenarios name as their applications, and execute their own "
    "checks. Before you use this with another person's scenario, read it.",
)
@click.option("--compress", is_flag=True, help="Use gzip to compress the captures of passing runs.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON lines: one per run, with its folder and figures, and one at the end.",
)
@ci_options
def run(
    scenario: tuple[str, ...],
    fidelity: str | None,
    seed: int | None,
    seeds: int | None,
    payload: Path | None,
    out: Path,
    sabotage: str | None,
    mutant: str | None,
    backend: "Backend | None",
    receive: dict[str, str],
    settings: dict[str, str],
    kernel: str,
    publisher: str,
    subscriber: str,
    jobs: int,
    known: Path | None,
    allow_commands: bool,
    compress: bool,
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
) -> int:
    """Run each SCENARIO, judge the runs, and write an HTML report.

    A SCENARIO is a name from `windtunnel list`, a YAML file, or a folder; the default is the three
    main scenarios. A folder is one from the list, such as loss, or your own: each file *.yaml in it
    and in its subfolders must be a scenario; hidden folders and run folders are ignored. Prints one
    line per run, with the verdict and its reason. The exit code is that of the worst verdict.

    \b
      windtunnel run loss/reliable-2pct --seed 7 --seeds 10 --receive nak-delay=1ms
      windtunnel run my-scenarios/ --fidelity sim --jobs 2
      windtunnel run my-scenario.yaml --payload capture.tar --json | jq .outcome
      windtunnel run --publisher aeronmd:build/aeronmd --subscriber pyaeron
    """
    from windtunnel.harness.cli.machine import default_fidelity
    from windtunnel.harness.cli.render.display import choose
    from windtunnel.harness.orchestrate.suite.runner import run_suite

    files = scenarios.find_all(scenario)
    _check_defects(sabotage, mutant, kernel)
    loaded = _load(files, receive, settings, allow_commands)
    if kernel == "uml":
        return in_kernel.run(files, click.get_current_context().params)
    chosen_fidelity = fidelity or default_fidelity([each.fidelity for each in loaded])
    with failure.one_line():
        pair = prepare_drivers(publisher, subscriber, mutant, chosen_fidelity, out)
        with choose(as_json) as display:
            result = run_suite(
                files,
                fidelity=cast("Fidelity", chosen_fidelity),
                seed=seed,
                seeds=seeds,
                payload_file=payload,
                out=out,
                on_event=display.on_event,
                sabotage=sabotage,
                backend=backend,
                receive=receive,
                tested=pair,
                jobs=jobs,
                known=_load_known(known),
                compress=compress,
                allow_commands=allow_commands,
                settings=settings,
            )
        report = write_files(result.suite_dir, junit, markdown)
    print_suite(result, report, as_json)
    return result.exit_code


def _load(
    files: list[Path], receive: dict[str, str], settings: dict[str, str], allow_commands: bool
) -> "list[Scenario]":
    """Load all scenarios. Raises Failure with the problems of all files."""
    from windtunnel.harness.orchestrate.scenario_file import require_runnable

    with failure.one_line():
        return require_runnable(files, receive, settings, allow_commands=allow_commands)


def _check_defects(sabotage: str | None, mutant: str | None, kernel: str) -> None:
    """Raise UsageError if `--sabotage` names an unknown defect, or if `--mutant` is used with a
    kernel (`--kernel`) that does not support it.
    """
    from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

    if sabotage is not None and sabotage not in SABOTAGES:
        raise click.UsageError(
            f"--sabotage: expected one of {', '.join(SABOTAGES)}, found {sabotage!r}"
        )
    if mutant is not None and kernel != "host":
        raise click.UsageError("--mutant needs --kernel host")


def _load_known(file: Path | None) -> "tuple[KnownFailure, ...]":
    """Load the known-failures file. Returns an empty tuple if no file was given."""
    from windtunnel.harness.scenario.known import load_known
    from windtunnel.harness.verdict.automatic import AUTOMATIC
    from windtunnel.harness.verdict.registry import CHECKS

    return load_known(file, {*CHECKS, *AUTOMATIC}) if file is not None else ()


def prepare_drivers(
    publisher: str, subscriber: str, mutant: str | None, fidelity: str, out: Path
) -> "Pair":
    """Return the drivers under test, after acquiring the privileges that the fidelity level (netns,
    compose or sim) needs.
    """
    from windtunnel.harness.orchestrate.labs import privileges
    from windtunnel.harness.orchestrate.subjects import peers

    if fidelity == "netns":
        privileges.acquire()
    pair = peers.pair(publisher, subscriber, fidelity, out.resolve() / peers.STORE)
    return pair if mutant is None else _with_mutant(mutant, pair, fidelity)


def _with_mutant(name: str, pair: "Pair", fidelity: str) -> "Pair":
    """Return the driver pair with a defect planted in Windtunnel's driver, compiled and ready to
    start.
    """
    from windtunnel.harness.exam import mutant_set, mutated_driver
    from windtunnel.harness.exam.mutant import MutantError

    if fidelity == "compose":
        raise click.UsageError(
            "--mutant needs --fidelity netns or sim: the container image has only the unmodified "
            "driver"
        )
    try:
        planted = mutant_set.of_name(name)
        chosen = planted.chosen(name)
        environment = mutated_driver.prepare(
            chosen,
            fidelity,
            lambda text: click.echo(text, err=True),
            mutants=planted.mutants,
            variant=planted.name,
        )
        return mutated_driver.with_mutant(pair, chosen, environment)
    except MutantError as error:
        raise click.UsageError(str(error)) from error
