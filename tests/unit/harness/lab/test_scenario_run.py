"""The verdict from the output of `windtunnel run`."""

import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from windtunnel.harness.lab.scenario_run import RunError, ScenarioRun


def a_run(folder: Path) -> ScenarioRun:
    return ScenarioRun(folder / "x.yaml", "made/x", 7, "sim", folder / "runs")


def execute(folder: Path, program: str) -> object:
    command = [sys.executable, "-c", program]
    with patch.object(ScenarioRun, "_command", lambda self: command):
        return a_run(folder).execute()


def test_the_command_names_the_scenario_and_one_seed(tmp_path: Path) -> None:
    command = a_run(tmp_path)._command()
    assert command[1:5] == ["-m", "windtunnel.harness", "run", str(tmp_path / "x.yaml")]
    assert command[command.index("--seed") + 1] == "7"
    assert "--set" not in command
    command = replace(a_run(tmp_path), settings={"loss": "5%", "delay": "1ms"})._command()
    assert command[-4:] == ["--set", "loss=5%", "--set", "delay=1ms"]
    assert "--allow-commands" not in command
    assert command[command.index("--publisher") + 1] == "ours"
    other = replace(a_run(tmp_path), allow_commands=True, driver="pyaeron")._command()
    assert other.count("pyaeron") == 2
    assert "--allow-commands" in other


def test_a_process_without_a_verdict_is_an_error_with_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="exit code 3 and no verdict: no space"):
        execute(tmp_path, "import sys; print('no space', file=sys.stderr); sys.exit(3)")


def test_the_outcome_the_report_and_the_command_are_read(tmp_path: Path) -> None:
    (tmp_path / "repro.txt").write_text("windtunnel run x.yaml --seed 7\n# a: ours\n")
    program = (
        "import json\n"
        "print(json.dumps({'kind': 'run', 'outcome': 'FAIL', 'reason': 'why'}))\n"
        f"print(json.dumps({{'kind': 'suite', 'runs': [{str(tmp_path)!r}], 'report': 'r.html'}}))"
    )
    verdict = execute(tmp_path, program)
    assert (verdict.outcome, verdict.reason) == ("FAIL", "why")
    assert verdict.report == Path("r.html")
    assert verdict.command == "windtunnel run x.yaml --seed 7"
