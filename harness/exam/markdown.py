"""An exam's Markdown report: the kill rate, the mutants that were not killed, then all mutants."""

from __future__ import annotations

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.exam.document import KILLED, UNDECIDED, Exam, MutantRow

UNEXPLAINED = "**not explained**"


def exam_markdown(exam: Exam) -> str:
    """Return an exam's report as Markdown, for exam.md."""
    lines = [
        "# Exam of the judge",
        "",
        f"{verdict_line(exam)}. Fidelity {exam.fidelity}.",
        "",
    ]
    if exam.is_void:
        lines += [
            "The driver without a defect did not pass, so a FAIL of a mutant would prove nothing:",
            "",
        ]
        lines += [
            f"- {run.scenario}: {run.outcome}: {run.reason}"
            for run in exam.sound
            if run.outcome != "PASS"
        ]
        return "\n".join(lines) + "\n"
    living = [row for row in exam.mutants if row.state != KILLED]
    if living:
        lines += [
            "## Not killed",
            "",
            "| mutant | defect | reason | effect |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {row.name} | {_cell(row.about)} | {_cell(because(row)) or UNEXPLAINED} "
            f"| {_cell(effect(row))} |"
            for row in living
        ]
        lines.append("")
    lines += [
        *_by_module(exam),
        "## All mutants",
        "",
        "| mutant | state | scenario | checks or outcomes |",
        "|---|---|---|---|",
    ]
    lines += [f"| {row.name} | {row.state} | {where(row)} | {by(row)} |" for row in exam.mutants]
    return "\n".join(lines) + "\n"


def _by_module(exam: Exam) -> list[str]:
    """Return a table of killed mutants by module if the mutants are generated ones."""
    if not exam.generated:
        return []
    lines = [
        "## Modules",
        "",
        "| module | killed | with an effect | with a shift | without |",
        "|---|---|---|---|---|",
    ]
    for file in sorted({row.file for row in exam.mutants}):
        rows = [row for row in exam.mutants if row.file == file]
        killed = sum(row.state == KILLED for row in rows)
        without = sum(row.is_without_effect for row in rows)
        shifted = sum(row.is_shifted for row in rows)
        counted = len(rows) - without - shifted
        lines.append(f"| {file} | {killed} | {counted} | {shifted} | {without} |")
    return [*lines, ""]


def verdict_line(exam: Exam) -> str:
    """Return an exam's kill rate and other totals as one line."""
    counted = f"{len(exam.counted)} mutants"
    if exam.generated:
        counted = f"{len(exam.counted)} generated mutants with an effect"
    text = (
        f"{exam.killed_count} of {counted} killed, {exam.kill_rate:.1%} "
        f"(at least {exam.least_kill_rate:.0%} required)"
    )
    if exam.is_void:
        return "The exam is void"
    if exam.unexplained:
        text += f"; {len(exam.unexplained)} not killed and not explained"
    shifted = sum(row.is_shifted for row in exam.mutants)
    with_effect = sum(row.effect is not None for row in exam.mutants) - shifted
    without = sum(row.is_without_effect for row in exam.mutants)
    if with_effect or without or shifted:
        text += f"; {with_effect} survived with an effect, "
        text += f"{shifted} with a shift, " if shifted else ""
        text += f"{without} without"
    if exam.again_count:
        text += f"; {exam.again_count} inconclusive "
        text += f"{noun_for(exam.again_count, 'run was', 'runs were')} repeated"
    return text if exam.is_whole else f"{text}; not all mutants were run"


def where(row: MutantRow) -> str:
    """Return the scenario in which a mutant was killed. For a mutant that was not killed, return
    all scenarios in which it ran.
    """
    killer = row.killer
    if killer:
        return killer.scenario
    return ", ".join(dict.fromkeys(run.scenario for run in row.runs))


def by(row: MutantRow) -> str:
    """Return the checks that failed in the run that killed a mutant. For a mutant that was not
    killed, return the outcomes of all its runs.
    """
    killer = row.killer
    if killer:
        return ", ".join(killer.checks)
    return ", ".join(run.outcome for run in row.runs)


def effect(row: MutantRow) -> str:
    """Return what differed first between a survivor's runs and the sound driver's, and in which
    run. Empty if they were not compared.
    """
    if row.effect:
        run, difference = row.effect
        shift_ns = difference.shift_ns
        shift = "" if shift_ns is None else f"a shift by at most {shift_ns / 1e3:g} us: "
        return f"{shift}in {run.scenario} with seed {run.seed}: {difference}"
    if not row.is_without_effect:
        return ""
    if not row.executions:
        return "none: what it changes was never executed"
    return f"none, although what it changes was executed {row.executions:,} times"


def because(row: MutantRow) -> str:
    """Return why a mutant was not killed: the documented reason if it survived, or the runs that
    did not pass if it is undecided.
    """
    if row.state == UNDECIDED:
        return "; ".join(
            f"{run.scenario}: {run.outcome}: {run.reason}"
            for run in row.runs
            if run.outcome != "PASS"
        )
    return row.survives_because


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
