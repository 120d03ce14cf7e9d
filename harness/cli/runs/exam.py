"""`windtunnel exam`: mutation testing of the judge, with drivers that have planted defects."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.options import SEED, SEEDS, out_option

if TYPE_CHECKING:
    from windtunnel.harness.exam.document import Exam, ExamRun, MutantRow
    from windtunnel.harness.exam.mutant import Mutant
    from windtunnel.harness.exam.mutant_set import MutantSet
    from windtunnel.harness.exam.mutation_run import MutationRun

COLOURS = {"killed": "green", "survived": "red", "undecided": "yellow"}


@click.command(short_help="Plant defects in the driver and test whether the judge detects them.")
@click.option(
    "--mutants",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Run only mutants whose names match this pattern, such as `nak-*`. Can be repeated.",
)
@click.option(
    "--generate",
    metavar="N",
    type=click.IntRange(min=1, max=10_000),
    help="Run N mutants that operators generate from the driver's sources.",
)
@click.option(
    "--seed",
    type=SEED,
    default=1,
    show_default=True,
    help="Seed that chooses the generated mutants.",
)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "sim"]),
    help="Use network namespaces or a simulation.  [default: as each mutant specifies]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    default=1,
    show_default=True,
    help="Number of parallel runs.",
)
@click.option(
    "--seeds",
    type=SEEDS,
    default=3,
    show_default=True,
    help="Number of seeds with which each simulated mutant runs until it is detected.",
)
@out_option("Parent folder of the exam folder.")
@click.option("--keep", is_flag=True, help="Also keep the run folders of detected mutants.")
@click.option("--list", "only_list", is_flag=True, help="List the mutants and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print the results of the exam as JSON.")
def exam(
    patterns: tuple[str, ...],
    generate: int | None,
    seed: int,
    fidelity: str | None,
    jobs: int,
    seeds: int,
    out: Path,
    keep: bool,
    only_list: bool,
    as_json: bool,
) -> int:
    """Test the judge: plant defects in the driver, one at a time, and check that runs FAIL.

    First the unmodified driver must pass all scenarios that are needed, or the exam is void. Then
    each mutant runs in its scenarios until a verdict is FAIL, which kills the mutant. The simulated
    runs of a survivor are compared with those of the unmodified driver: if they differ, a check is
    missing; if they are equal, a scenario is missing. A run that failed because the machine was too
    slow is repeated once, with no other run in parallel. Exits
    with 0 if at least 98 % of the mutants were killed and each survivor is explained, else with 1.
    A void exam exits with 2, or with 3 if the harness failed.

    With --generate, the mutants are small edits that a seed chooses, with equal weight for each
    module. Each runs in the scenarios that execute what it changes. At least 85 % of those with an
    effect must be killed.

    \b
      windtunnel exam
      windtunnel exam --generate 250 --seed 7 --seeds 1
      windtunnel exam --mutants 'nak-*' --jobs 2
      windtunnel run exam/loss --fidelity sim --mutant resend-never
    """
    from windtunnel.harness.exam import mutant, mutant_set
    from windtunnel.harness.exam.mutation_run import MutationRun

    try:
        planted = mutant_set.written()
        if generate is not None:
            planted = mutant_set.generated(generate, seed)
        selected = mutant.chosen(planted.mutants, patterns)
    except mutant.MutantError as error:
        raise click.UsageError(str(error)) from error
    if only_list:
        _list(selected, as_json)
        return exit_code.OK
    folder = out.resolve() / f"exam-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    mutation_run = MutationRun(
        selected,
        folder,
        fidelity,
        jobs,
        keep,
        sound=planted.sound,
        generated=planted.name,
        seeds=seeds,
    )
    return _examine(mutation_run, planted, as_json)


def _examine(mutation_run: "MutationRun", planted: "MutantSet", as_json: bool) -> int:
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.exam import mutated_driver
    from windtunnel.harness.exam.examine import DOCUMENT, examine
    from windtunnel.harness.exam.markdown import exam_markdown
    from windtunnel.harness.orchestrate.fidelity import NETNS
    from windtunnel.harness.orchestrate.labs import labs, privileges

    folder, mutants = mutation_run.folder, mutation_run.mutants
    progress, environments = Progress(len(mutants)), {}
    with one_line():
        for needed in sorted({mutation_run.fidelity_of(each) for each in mutants}):
            if needed == NETNS:
                privileges.acquire()
            labs.require(needed)
            environments[needed] = mutated_driver.prepare(
                None,
                needed,
                lambda text: click.echo(text, err=True),
                mutants=planted.mutants,
                variant=planted.name,
            )
        mutation_run = replace(mutation_run, planted=planted.mutants, environments=environments)
        found, signal_code = examine(mutation_run, progress)
    markdown = folder / "exam.md"
    markdown.write_text(exam_markdown(found), encoding="utf-8")
    if as_json:
        click.echo((folder / DOCUMENT).read_text(encoding="utf-8").rstrip())
    else:
        _print_table(found)
        click.echo(f"report: {markdown}")
    if signal_code is not None:
        click.echo(f"windtunnel: interrupted; partial results are in {folder}", err=True)
        return signal_code
    return code_of(found)


def code_of(found: "Exam") -> int:
    """Return the exit code for a complete exam."""
    if found.is_void:
        has_harness_failure = any(run.outcome == "HARNESS" for run in found.sound)
        return exit_code.HARNESS if has_harness_failure else exit_code.INCONCLUSIVE
    return exit_code.OK if found.is_passed else 1


class Progress:
    """Prints a line on stderr after each run of the unmodified driver, and after each mutant."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._count = 0

    def on_driver_without_defect(self, run: "ExamRun") -> None:
        click.echo(f"unmodified driver  {run.scenario}: {run.outcome}  {run.seconds:g} s", err=True)

    def on_repeat(self, name: str, run: "ExamRun") -> None:
        text = (
            f"repeated without parallel runs: {name}  {run.scenario}: {run.outcome}: {run.reason}"
        )
        click.echo(text, err=True)

    def on_mutant(self, row: "MutantRow") -> None:
        from windtunnel.harness.exam.markdown import by, effect, where

        self._count += 1
        state = click.style(f"{row.state:<9}", fg=COLOURS[row.state], bold=True)
        duration_s = sum(run.seconds for run in row.runs)
        count = f"[{self._count}/{self._total}]"
        text = f"{count} {state} {row.name}  {where(row)}: {by(row)}  {duration_s:.0f} s"
        click.echo(text, err=True)
        if effect(row):
            click.echo(f"    effect: {effect(row)}", err=True)


def _list(mutants: "Sequence[Mutant]", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([each.model_dump() for each in mutants], indent=1))
        return
    for each in mutants:
        click.echo(f"{each.name:<40} {each.about}")


def _print_table(found: "Exam") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from windtunnel.harness.exam.markdown import because, by, effect, verdict_line, where

    table = Table(box=None, header_style="dim")
    for heading in ("mutant", "state", "scenario", "check", "explanation", "effect"):
        table.add_column(heading, overflow="fold")
    for row in found.mutants:
        colour = COLOURS[row.state]
        table.add_row(
            row.name,
            f"[{colour}]{row.state}[/{colour}]",
            where(row),
            by(row),
            "" if row.state == "killed" else escape(because(row)) or "[red]not explained[/red]",
            escape(effect(row)),
        )
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(table)
    console.print(verdict_line(found), soft_wrap=True)
