"""`windtunnel exam`: run drivers with planted defects, and see whether the judge finds them out."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from windtunnel.harness.cli import exit_code

if TYPE_CHECKING:
    from windtunnel.harness.exam.document import Exam, ExamRun, MutantRow
    from windtunnel.harness.exam.mutant import Mutant

COLOURS = {"killed": "green", "survived": "red", "undecided": "yellow"}


@click.command(short_help="Plant defects in the driver, and see whether the judge finds them.")
@click.option(
    "--mutants",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Only those whose name matches, such as `nak-*`; may be given more than once.",
)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "sim"]),
    help="Where all mutants run.  [default: each where it is to be examined]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    default=1,
    show_default=True,
    help="How many runs at a time.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Where the exam's folder is made.",
)
@click.option("--keep", is_flag=True, help="Keep the run folders of killed mutants, too.")
@click.option("--list", "only_list", is_flag=True, help="List the mutants, and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="The whole exam as JSON on stdout.")
def exam(
    patterns: tuple[str, ...],
    fidelity: str | None,
    jobs: int,
    out: Path,
    keep: bool,
    only_list: bool,
    as_json: bool,
) -> int:
    """Examine the judge: plant one defect after the other in the driver, and let it be judged.

    First the sound driver must pass every scenario that is needed; if it does not, the exam is
    void. Then each mutant is run in its scenarios until one is judged FAIL, which kills it. Exits
    with 0 when at least 98 % were killed and each other one's survival is explained, else with 1;
    a void exam exits with 2, or 3 where the harness failed. A run that the machine was too slow for
    is made once more, alone.

    \b
      windtunnel exam
      windtunnel exam --mutants 'nak-*' --jobs 2
      windtunnel run exam/loss --fidelity sim --mutant resend-never
    """
    from windtunnel.harness.exam import mutant

    try:
        chosen = mutant.chosen(mutant.load_all(), patterns)
    except mutant.MutantError as error:
        raise click.UsageError(str(error)) from error
    if only_list:
        _list(chosen, as_json)
        return exit_code.OK
    return _examine(chosen, fidelity, jobs, out, keep, as_json)


def _examine(
    chosen: "Sequence[Mutant]",
    fidelity: str | None,
    jobs: int,
    out: Path,
    keep: bool,
    as_json: bool,
) -> int:
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.exam import mutated_driver
    from windtunnel.harness.exam.examine import DOCUMENT, MutationRun, examine
    from windtunnel.harness.exam.markdown import exam_markdown
    from windtunnel.harness.orchestrate.labs import labs, privileges

    folder = out.resolve() / f"exam-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    progress = Progress(len(chosen))
    with one_line():
        sitting = MutationRun(chosen, folder, fidelity, jobs, keep)
        for place in sorted({sitting.place(each) for each in chosen}):
            if place == labs.NETNS:
                privileges.acquire()
            labs.require(place)
            mutated_driver.prepare(None, place, lambda text: click.echo(text, err=True))
        found, asked = examine(sitting, progress)
    markdown = folder / "exam.md"
    markdown.write_text(exam_markdown(found), encoding="utf-8")
    if as_json:
        click.echo((folder / DOCUMENT).read_text(encoding="utf-8").rstrip())
    else:
        _tell(found)
        click.echo(f"report: {markdown}")
    if asked is not None:
        click.echo(f"windtunnel: interrupted; what there is lies in {folder}", err=True)
        return asked
    return code_of(found)


def code_of(found: "Exam") -> int:
    """The exit code of an exam that came to its end."""
    if found.is_void:
        is_ours = any(run.outcome == "HARNESS" for run in found.sound)
        return exit_code.HARNESS if is_ours else exit_code.INCONCLUSIVE
    return exit_code.OK if found.is_passed else 1


class Progress:
    """A line on stderr as each run of the sound driver, and each mutant, ends."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._count = 0

    def on_sound(self, run: "ExamRun") -> None:
        click.echo(f"sound driver  {run.scenario}: {run.outcome}  {run.seconds:g} s", err=True)

    def on_again(self, name: str, run: "ExamRun") -> None:
        text = f"once more, alone: {name}  {run.scenario}: {run.outcome}: {run.reason}"
        click.echo(text, err=True)

    def on_mutant(self, row: "MutantRow") -> None:
        from windtunnel.harness.exam.markdown import by, where

        self._count += 1
        state = click.style(f"{row.state:<9}", fg=COLOURS[row.state], bold=True)
        lasted_s = sum(run.seconds for run in row.runs)
        place = f"[{self._count}/{self._total}]"
        text = f"{place} {state} {row.name}  {where(row)}: {by(row)}  {lasted_s:.0f} s"
        click.echo(text, err=True)


def _list(chosen: "Sequence[Mutant]", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([each.model_dump() for each in chosen], indent=1))
        return
    for each in chosen:
        click.echo(f"{each.name:<40} {each.about}")


def _tell(found: "Exam") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from windtunnel.harness.exam.markdown import because, by, verdict_line, where

    table = Table(box=None, header_style="dim")
    for heading in ("mutant", "state", "in", "by", "because"):
        table.add_column(heading, overflow="fold")
    for row in found.mutants:
        colour = COLOURS[row.state]
        table.add_row(
            row.name,
            f"[{colour}]{row.state}[/{colour}]",
            where(row),
            by(row),
            "" if row.state == "killed" else escape(because(row)) or "[red]not explained[/red]",
        )
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(table)
    console.print(verdict_line(found), soft_wrap=True)
