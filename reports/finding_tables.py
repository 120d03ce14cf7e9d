"""HTML tables of a run's checks and gates, with what a failed gate means for the verdict.

Checks   37 of 37 passed              folded, because all passed
Gates    8 of 9 passed
  INCONCLUSIVE  host_was_not_overloaded   No effect on the verdict: ...
  8 passed                            folded
"""

from windtunnel.harness.artifact.documents import Document
from windtunnel.reports.evidence import RunDocuments
from windtunnel.reports.html import Markup, badge, details, element, joined, table

_QUIET_OUTCOMES = ("PASS", "UNSUPPORTED")
"""Outcomes of findings that are initially collapsed."""


def findings(run: RunDocuments) -> Markup:
    """Return the HTML tables of checks and gates. Passed findings are collapsed."""
    parts = []
    for kind, title in (("checks", "Checks"), ("gates", "Gates")):
        found = run.findings(kind)
        quiet = [each for each in found if each.get("outcome") in _QUIET_OUTCOMES]
        loud = [each for each in found if each not in quiet]
        remark = f"{len(quiet)} of {len(found)} passed" if found else "none"
        content = _table(run, kind, loud or quiet)
        if loud and quiet:
            rest = details(f"{len(quiet)} passed", "", _table(run, kind, quiet))
            content = joined([content, rest])
        parts.append(details(title, remark, content, is_open=bool(loud)))
    return joined(parts)


def gate_meaning(run: RunDocuments, gate: Document) -> str:
    """Explain in one sentence what a failed gate means for the run's verdict.

    In the verdict document, each violation that a gate may explain names that gate.
    """
    name, about = str(gate.get("name")), str(gate.get("about", ""))
    verdict, reason = str(run.verdict.get("outcome")), str(run.verdict.get("reason", ""))
    if verdict == "PASS":
        return "No effect on the verdict: no check was violated."
    if verdict == "FAIL":
        return "No effect on the verdict: this gate cannot explain the violation."
    excuse = f"inconclusive because gate {name} failed:"
    excused = [each for each in run.findings("checks") if str(each.get("text")).startswith(excuse)]
    if excused:
        names = ", ".join(dict.fromkeys(str(each.get("name")) for each in excused))
        count = f"{len(excused)} violation{'' if len(excused) == 1 else 's'} ({names})"
        verb = "does" if len(excused) == 1 else "do"
        return f"This may explain {count}, which therefore {verb} not count against the driver."
    if reason == f"{name}{f' ({about})' if about else ''}: {gate.get('text')}":
        if verdict == "HARNESS":
            cause = "Windtunnel itself failed"
        else:
            cause = "the evidence cannot be trusted"
        return f"This decides the verdict: {cause}, so the driver is not judged."
    return "Not decisive: the verdict has another reason, see above."


def _table(run: RunDocuments, kind: str, found: list[Document]) -> Markup:
    heads = [("", ""), ("name", ""), ("subject", ""), ("finding", "text")]
    rows = [
        [
            badge(str(each.get("outcome")), "small"),
            element("code", each.get("name")),
            each.get("about", ""),
            joined([_meaning(run, kind, each), str(each.get("text", "")), _pointers(each)]),
        ]
        for each in found
    ]
    return table(heads, rows)


def _meaning(run: RunDocuments, kind: str, finding: Document) -> Markup:
    if kind != "gates" or finding.get("outcome") in _QUIET_OUTCOMES:
        return Markup("")
    return element("div", gate_meaning(run, finding), class_="meaning")


def _pointers(finding: Document) -> Markup:
    """Return where a finding occurred, as text: message, byte, position and files."""
    keys = (("message", "message"), ("byte_offset", "byte"), ("position", "position"))
    parts = [f"{word} {finding[key]}" for key, word in keys if finding.get(key) is not None]
    parts += [str(each) for each in finding.get("evidence", [])]
    return element("div", " · ".join(parts), class_="where") if parts else Markup("")
