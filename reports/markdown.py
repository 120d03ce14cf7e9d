"""Markdown summary of a suite or matrix for a CI system's job page.

total outcome    table: scenario x pair, worst verdict, passed/total    list of failures
"""

from windtunnel.harness.artifact.escaped_text import escaped
from windtunnel.reports.evidence import worst
from windtunnel.reports.outcomes import Outcomes, Row

MARKS = {
    "PASS": "✅",
    "FAIL": "❌",
    "HARNESS": "🔧",
    "INCONCLUSIVE": "❔",
    "CANCELLED": "⏹",
    "UNSUPPORTED": "⬜",
}
ROWS_MAX = 50
"""Maximum number of listed failures, because CI systems truncate long summaries."""

REASON_LENGTH_MAX = 400


def summary(outcomes: Outcomes) -> str:
    """Return the Markdown summary of a suite or matrix, ending with a line feed."""
    parts = [f"## {MARKS.get(outcomes.outcome, '')} {outcomes.title}: {outcomes.outcome}", ""]
    parts += [_counts(outcomes), "", *_table(outcomes)]
    bad = [row for row in outcomes.rows if row.outcome != "PASS"]
    if bad:
        parts += ["", "### Not passed", "", *_list(bad)]
    return "\n".join(parts) + "\n"


def _counts(outcomes: Outcomes) -> str:
    names = [row.outcome for row in outcomes.rows]
    counts = ", ".join(f"{names.count(name)} {name}" for name in MARKS if name in names)
    runs = f"{len(names)} run{'' if len(names) == 1 else 's'}"
    return f"{runs}: {counts or 'none'}. Evidence: {_code(str(outcomes.folder))}"


def _table(outcomes: Outcomes) -> list[str]:
    pairs = outcomes.pairs()
    lines = [
        "| scenario | " + " | ".join(_escaped(pair) for pair in pairs) + " |",
        "|---|" + "---|" * len(pairs),
    ]
    for scenario in outcomes.scenarios():
        cells = (_cell(outcomes.cell(scenario, pair)) for pair in pairs)
        lines.append(f"| {_escaped(scenario)} | " + " | ".join(cells) + " |")
    return lines


def _cell(rows: list[Row]) -> str:
    if not rows:
        return ""
    outcome = worst([row.outcome for row in rows])
    if outcome == "UNSUPPORTED":
        return f"{MARKS[outcome]} {outcome}"
    passed = sum(row.outcome == "PASS" for row in rows)
    return f"{MARKS.get(outcome, '')} {outcome} {passed}/{len(rows)}"


def _list(rows: list[Row]) -> list[str]:
    ranked = [row for row in rows if row.outcome != "UNSUPPORTED"]
    lines = [
        f"- {MARKS.get(row.outcome, '')} **{row.outcome}** {_escaped(row.scenario)}, "
        f"{_escaped(row.pair)}, seed {row.seed}: {_escaped(row.reason[:REASON_LENGTH_MAX])} "
        f"({_code(row.folder)})"
        for row in ranked[:ROWS_MAX]
    ]
    if len(ranked) > ROWS_MAX:
        lines.append(f"- and {len(ranked) - ROWS_MAX} more")
    return lines + _unsupported([row for row in rows if row.outcome == "UNSUPPORTED"])


def _unsupported(rows: list[Row]) -> list[str]:
    """Return a line for each reason why runs are unsupported, with the number of these runs."""
    reasons = [row.reason for row in rows]
    return [
        f"- {MARKS['UNSUPPORTED']} **UNSUPPORTED** {reasons.count(reason)} of the runs: "
        f"{_escaped(reason[:REASON_LENGTH_MAX])}"
        for reason in dict.fromkeys(reasons)
    ]


def _escaped(text: str) -> str:
    """Escape text for Markdown, including use in table cells. Control characters are escaped, too,
    because logs of CI systems and terminals show the file as it is.
    """
    text = escaped(text)
    for mark in ("\\", "|", "`", "*", "_", "<", "[", "#"):
        text = text.replace(mark, f"\\{mark}")
    return text


def _code(text: str) -> str:
    return f"`{escaped(text).replace('`', '')}`"
