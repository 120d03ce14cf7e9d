"""JUnit XML output for CI systems: one test suite per scenario, one test case per run.

PASS                                  a test case
FAIL                                  with <failure>
HARNESS, INCONCLUSIVE, CANCELLED      with <error>: the driver could not be assessed
UNSUPPORTED                           with <skipped>
"""

import re
from pathlib import Path
from xml.etree import ElementTree as Tree

from windtunnel.reports.outcomes import Outcomes, Row

ELEMENT_OF = {
    "FAIL": "failure",
    "HARNESS": "error",
    "INCONCLUSIVE": "error",
    "CANCELLED": "error",
    "UNSUPPORTED": "skipped",
}
COUNT_OF = {"failure": "failures", "error": "errors", "skipped": "skipped"}

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow. The output of a crashed process may contain them."""


def junit_xml(outcomes: Outcomes) -> bytes:
    """Return the outcomes as a JUnit XML document, in UTF-8."""
    root = Tree.Element("testsuites", {"name": outcomes.title, **_counts(outcomes.rows)})
    for scenario in outcomes.scenarios():
        name = _clean(scenario)
        rows = tuple(row for row in outcomes.rows if row.scenario == scenario)
        suite = Tree.SubElement(root, "testsuite", {"name": name, **_counts(rows)})
        for row in rows:
            _case(suite, row, outcomes.folder)
    Tree.indent(root)
    text: bytes = Tree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _counts(rows: tuple[Row, ...]) -> dict[str, str]:
    kinds = [ELEMENT_OF.get(row.outcome) for row in rows]
    counts = {name: str(kinds.count(kind)) for kind, name in COUNT_OF.items()}
    duration_s = sum(row.duration_s for row in rows)
    return {"tests": str(len(rows)), **counts, "time": f"{duration_s:.3f}"}


def _case(suite: Tree.Element, row: Row, folder: Path) -> None:
    case = Tree.SubElement(
        suite,
        "testcase",
        classname=_clean(row.scenario.replace("/", ".")),
        name=_clean(f"{row.pair}, seed {row.seed}"),
        time=f"{row.duration_s:.3f}",
    )
    kind = ELEMENT_OF.get(row.outcome)
    if kind is not None:
        reason = _clean(row.reason)
        found = Tree.SubElement(case, kind, message=reason, type=row.outcome)
        found.text = reason
    Tree.SubElement(case, "system-out").text = _clean(f"evidence: {folder / row.folder}")


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
