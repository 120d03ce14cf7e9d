"""`windtunnel run` and `windtunnel explain`, with the runner replaced: no lab is built here."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from tests.unit.reports.synthetic_suite import RunParameters, make_suite
from windtunnel.harness.artifact.run.suite import ScenarioResult
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.cli.runs import run as run_module
from windtunnel.harness.cli.runs import run_output
from windtunnel.harness.cli.runs.run_output import suite_lines
from windtunnel.harness.orchestrate.event import RunEvent
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.suite import runner
from windtunnel.harness.orchestrate.suite.runner import RunSummary, SuiteResult

NAME = "loss/reliable-2pct"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The options that the runner was called with; its result is a synthetic suite that failed."""
    seen: dict[str, Any] = {}

    def run_suite(files: list[Path], *, on_event: Any, **options: Any) -> SuiteResult:
        seen.update(options, files=files)
        suite = make_suite(tmp_path / "suite", RunParameters(frame_count=100), ("FAIL",))
        folder = suite.runs()[0].path
        for what in (
            {"kind": "run"},
            {"kind": "phase", "phase": "traffic"},
            {"kind": "progress", "fraction": 0.5, "delivered_bytes": 5},
            {
                "kind": "verdict",
                "outcome": "FAIL",
                "text": "message 4711\ndiffers",
                "run_dir": folder,
            },
        ):
            on_event(RunEvent(run_index=0, run_count=1, scenario=NAME, seed=7, **what))
        return SuiteResult(1, suite.path, [RunSummary(NAME, 7, folder, "FAIL", "message 4711")])

    monkeypatch.setattr(runner, "run_suite", run_suite)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", lambda: None)
    return seen


def test_prints_one_line_for_each_run_then_the_report(
    calls: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", NAME, "--fidelity", "netns"]) == 1
    output = capsys.readouterr()
    verdict, repeat, report = output.out.splitlines()
    assert verdict.startswith(f"FAIL          {NAME}  seed 7  ")
    assert verdict.endswith(" s  message 4711 differs")
    assert repeat.startswith("reproduce: windtunnel run ")
    assert report == f"report: {tmp_path / 'suite' / 'report.html'}"
    assert "\x1b" not in output.out + output.err
    assert f"[1/1] {NAME}  seed 7\n" in output.err
    assert "[1/1]  50 %\n" in output.err


@pytest.mark.parametrize(("height", "is_repeated"), [(24, True), (40, False)])
def test_a_verdict_that_scrolled_off_the_terminal_is_repeated(
    height: int,
    is_repeated: bool,
    calls: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(run_output, "_result_texts", lambda *_: ["figures"] * 24)
    monkeypatch.setattr(run_output, "_is_terminal", lambda: True)
    monkeypatch.setenv("LINES", str(height))
    main(["run", NAME, "--fidelity", "netns"])
    lines = capsys.readouterr().out.splitlines()
    verdicts = [index for index, line in enumerate(lines) if line.startswith("FAIL ")]
    assert verdicts == ([0, len(lines) - 1] if is_repeated else [0])


def test_passes_on_its_options(calls: dict[str, Any], tmp_path: Path) -> None:
    payload = tmp_path / "bytes"
    payload.write_bytes(b"x")
    options = ["--fidelity", "compose", "--seed", "9", "--seeds", "3", "--sabotage", "flip-byte"]
    main(["run", *options, "--payload", str(payload), "--out", str(tmp_path / "o")])
    assert len(calls["files"]) == 3
    assert calls["fidelity"] == "compose"
    assert (calls["seed"], calls["seeds"]) == (9, 3)
    assert calls["payload_file"] == payload
    assert calls["out"] == tmp_path / "o"
    assert calls["sabotage"] == "flip-byte"


@pytest.mark.parametrize(("engine", "fidelity"), [("27.0", "compose"), (None, "netns")])
def test_containers_are_the_default_if_an_engine_responds(
    calls: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    engine: str | None,
    fidelity: str,
) -> None:
    monkeypatch.setattr("windtunnel.harness.cli.machine.engine_version", lambda: engine)
    main(["run", NAME])
    assert calls["fidelity"] == fidelity


def test_json_is_one_line_for_each_run_and_one_for_the_suite(
    calls: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", NAME, "--fidelity", "netns", "--json"]) == 1
    run, suite = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    (folder,) = suite["runs"]
    assert run == {
        "kind": "run",
        "scenario": NAME,
        "seed": 7,
        "outcome": "FAIL",
        "reason": "message 4711\ndiffers",
        "run_dir": folder,
        "results": [],
    }
    assert suite["exit_code"] == 1
    assert Path(suite["report"]).is_file()
    assert [Path(each).is_dir() for each in suite["runs"]] == [True]
    assert (suite["scenarios"], suite["remarks"]) == ([], [])


KNOWN = """\
schema: windtunnel-known/1
known:
  - {scenario: loss/reliable-2pct, check: naks_paced, subject: ours, owner: Jane,
     issue: "https://example.org/1", expires: 2027-03-31}
"""


def test_known_failures_are_read_before_anything_starts(
    calls: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(KNOWN)
    main(["run", NAME, "--fidelity", "netns", "--known", str(file)])
    assert [each.check for each in calls["known"]] == ["naks_paced"]
    calls.clear()
    file.write_text(KNOWN.replace("naks_paced", "no_such_check"))
    assert main(["run", NAME, "--fidelity", "netns", "--known", str(file)]) == exit_code.USAGE
    assert f"{file}:3:36: known[0].check: expected a check's name" in capsys.readouterr().err
    assert not calls


def test_scenarios_with_several_runs_and_remarks_are_printed_at_the_end(capsys) -> None:
    several = ScenarioResult("a/b", "PASS", "0 of 9 runs failed", 9, 0, 0, 0.0, 0.3, None)
    alone = ScenarioResult("c/d", "FAIL", "1 of 1 runs failed", 1, 1, 0, 0.0, 1.0, None)
    known = ScenarioResult("e/f", "PASS", "0 of 0", 0, 0, 1, 0.0, 1.0, None)
    for line in suite_lines([several, alone, known], ["take it out"]):
        click.echo(line)
    assert capsys.readouterr().out.splitlines() == [
        "PASS          a/b  0 of 9 runs failed",
        "PASS          e/f  0 of 0",
        "NOTE: take it out",
    ]


def test_an_unknown_sabotage_is_refused(
    calls: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", NAME, "--sabotage", "frob"]) == exit_code.USAGE
    assert "flip-byte" in capsys.readouterr().err
    assert not calls


@pytest.mark.parametrize("option", ["--publisher", "--subscriber"])
def test_a_path_at_which_there_is_no_driver_is_a_usage_error(
    option: str, calls: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", NAME, "--fidelity", "sim", option, "aeronmd:/no/aeronmd"]
    assert main(arguments) == exit_code.USAGE
    assert "'aeronmd:/no/aeronmd': expected the path of a media driver" in capsys.readouterr().err
    assert "files" not in calls


def test_an_unsuitable_machine_is_one_line_and_exit_code_harness(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise LabError("network namespaces need CAP_NET_ADMIN")

    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", refuse)
    assert main(["run", NAME, "--fidelity", "netns"]) == exit_code.HARNESS
    assert capsys.readouterr().err == "windtunnel: network namespaces need CAP_NET_ADMIN\n"


def test_a_report_that_cannot_be_written_does_not_change_the_verdict(
    calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr("windtunnel.reports.page.write_suite_report", refuse)
    assert main(["run", NAME, "--fidelity", "netns"]) == 1
    output = capsys.readouterr()
    assert "FAIL" in output.out
    assert "the report could not be written: disk full" in output.err


@pytest.mark.parametrize("command", ["explain", "run"])
def test_a_wrong_scenario_is_refused_with_file_and_line(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", lambda: None)
    file = tmp_path / "wrong.yaml"
    file.write_text("schema: windtunnel/1\nname: x\nfrobnicate: 1\n")
    more = ["--fidelity", "netns"] if command == "run" else []
    assert main([command, str(file), *more]) == exit_code.USAGE
    assert "wrong.yaml:3" in capsys.readouterr().err
    assert not (Path.cwd() / "wrong").exists()


def test_explain_prints_rules_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", NAME, "--seed", "9"]) == exit_code.OK
    output = capsys.readouterr().out
    assert "seed 9" in output
    assert "lose-data" in output
    assert main(["explain", NAME, "--json"]) == exit_code.OK
    assert json.loads(capsys.readouterr().out)["name"] == NAME
    assert main(["explain", NAME, "--schema"]) == exit_code.OK
    assert "properties" in json.loads(capsys.readouterr().out)["else"]


def test_list_names_the_three_main_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == exit_code.OK
    rows = json.loads(capsys.readouterr().out)
    assert sum(row["main"] for row in rows) == 3
    assert all(row["about"] for row in rows)
    main(["list"])
    assert f"{NAME}  (main)" in capsys.readouterr().out


@pytest.mark.parametrize("check", ["applications_ran", "observed_data_arrived"])
def test_a_known_failure_may_be_of_an_automatic_check(check: str, tmp_path: Path) -> None:
    file = tmp_path / "known.yaml"
    entry = f"scenario: {NAME}, check: {check}, subject: ours, owner: Jane Doe"
    entry += ', issue: "https://example.org/issues/17", expires: 2027-03-31'
    file.write_text(f"schema: windtunnel-known/1\nknown:\n  - {{{entry}}}\n")
    assert [each.check for each in run_module._load_known(file)] == [check]
