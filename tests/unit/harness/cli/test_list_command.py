"""`windtunnel list`: every scenario, and with `--checks` every check and gate with a sentence."""

import json
from pathlib import Path

import pytest

from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.root import main
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.verdict.registry import CHECKS, GATES

ALWAYS = "subject_lived"
AUTOMATIC = (
    ALWAYS,
    "applications_ran",
    "reported_round_trips",
    "observed_streams",
    "observed_data_arrived",
    "observed_end_of_stream",
    "observed_goodput",
    "observed_silence",
    "observed_recovery",
    "observed_back_pressure",
    "observed_images",
    "reported_once_in_order",
    "own_checks",
    "within_envelope",
)


def test_the_list_agrees_with_the_parsed_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == exit_code.OK
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == scenarios.names()
    for row in rows:
        parsed = load_scenario(scenarios.find(row["name"]))
        assert row["about"] == " ".join(parsed.about.split()), row["name"]
        assert row["fidelity"] == list(parsed.fidelity), row["name"]
    assert [row["name"] for row in rows if row["main"]] == sorted(scenarios.MAIN)


def test_an_unreadable_scenario_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "damaged.yaml"
    file.write_text("name: [\nnetwork: {}\n")
    monkeypatch.setattr(scenarios, "names", lambda: ["damaged"])
    monkeypatch.setattr(scenarios, "find", lambda _: file)
    assert main(["list"]) == exit_code.USAGE
    assert str(file) in capsys.readouterr().err


def test_every_check_and_gate_has_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--checks", "--json"]) == exit_code.OK
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [*CHECKS, *AUTOMATIC, *GATES]
    for row in rows:
        assert row["about"].endswith("."), row
        assert ". " not in row["about"], row
        assert "\n" not in row["about"], row
    by_name = {row["name"]: row for row in rows}
    assert by_name["naks_paced"]["role"] == "check"
    assert by_name["naks_paced"]["kind"] == "timing"
    assert by_name[ALWAYS]["role"] == "built-in check"
    assert by_name["faults_happened"]["role"] == "gate"


def test_checks_are_also_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--checks"]) == exit_code.OK
    lines = capsys.readouterr().out.splitlines()
    for name in (*CHECKS, *AUTOMATIC, *GATES):
        assert [line for line in lines if line.split()[:1] == [name]], name
    assert max(map(len, lines)) <= 120
