"""Tables of gates and checks fold what passed, and explain what a failed gate means."""

import re
from typing import Any

import pytest

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.evidence import RunDocuments
from windtunnel.reports.finding_tables import findings, gate_meaning


def finding(outcome: str, name: str, text: str = "text", about: str = "") -> dict[str, Any]:
    return {"name": name, "about": about, "outcome": outcome, "text": text, "evidence": []}


def documents(outcome: str, reason: str = "", **kinds: list[dict[str, Any]]) -> RunDocuments:
    verdict = {"outcome": outcome, "reason": reason, "gates": [], "checks": [], **kinds}
    return RunDocuments(RunDir.__new__(RunDir), verdict=verdict)


OVERLOADED = finding("INCONCLUSIVE", "host_was_not_overloaded", "the driver waited", "a")
EXCUSED = finding(
    "INCONCLUSIVE",
    "naks_paced",
    "inconclusive because gate host_was_not_overloaded failed: a NAK was late",
)


def test_gates_that_passed_are_folded_below_the_one_that_did_not() -> None:
    gates = [finding("PASS", f"gate_{each}") for each in range(3)]
    run = documents("PASS", gates=[gates[0], OVERLOADED, *gates[1:]])
    html = str(findings(run))
    (gates_part,) = re.findall(r"<details[^>]*><summary>Gates.*", html)
    before, folded = gates_part.split("<details>", 1)
    assert before.startswith("<details open>")
    assert "host_was_not_overloaded" in before
    assert "gate_" not in before
    assert "3 passed" in folded
    assert [f"gate_{each}" in folded for each in range(3)] == [True] * 3


def test_all_tables_are_folded_if_everything_passed() -> None:
    run = documents("PASS", gates=[finding("PASS", "g")], checks=[finding("PASS", "c")])
    html = str(findings(run))
    assert html.count("<details>") == 2
    assert "<details open>" not in html


def test_the_meaning_precedes_the_finding() -> None:
    html = str(findings(documents("PASS", gates=[OVERLOADED])))
    assert 0 < html.index("No effect on the verdict") < html.index("the driver waited")


@pytest.mark.parametrize(
    ("verdict", "reason", "gate", "checks", "meaning"),
    [
        ("PASS", "", OVERLOADED, [], "No effect on the verdict: no check was violated."),
        (
            "FAIL",
            "delivered_once: message 3 is missing",
            OVERLOADED,
            [finding("FAIL", "delivered_once")],
            "No effect on the verdict: this gate cannot explain the violation.",
        ),
        (
            "INCONCLUSIVE",
            "naks_paced: inconclusive because ...",
            OVERLOADED,
            [EXCUSED, EXCUSED, finding("PASS", "naks_paced")],
            "This may explain 2 violations (naks_paced), which therefore do not count against the "
            "driver.",
        ),
        (
            "INCONCLUSIVE",
            "captures_complete (a): 3 packets lost",
            finding("INCONCLUSIVE", "captures_complete", "3 packets lost", "a"),
            [],
            "This decides the verdict: the evidence cannot be trusted, so the driver is not "
            "judged.",
        ),
        (
            "HARNESS",
            "ledger_balanced: 3 unaccounted",
            finding("HARNESS", "ledger_balanced", "3 unaccounted"),
            [],
            "This decides the verdict: Windtunnel itself failed, so the driver is not judged.",
        ),
        (
            "INCONCLUSIVE",
            "captures_complete (a): 3 packets lost",
            OVERLOADED,
            [],
            "Not decisive: the verdict has another reason, see above.",
        ),
        (
            "UNSUPPORTED",
            "no netem",
            OVERLOADED,
            [],
            "Not decisive: the verdict has another reason, see above.",
        ),
    ],
)
def test_a_failed_gate_explains_its_effect_on_the_verdict(
    verdict: str, reason: str, gate: dict[str, Any], checks: list[dict[str, Any]], meaning: str
) -> None:
    run = documents(verdict, reason, gates=[gate], checks=checks)
    assert gate_meaning(run, gate) == meaning
