"""`windtunnel judge` and `windtunnel report`."""

import json
from pathlib import Path

import pytest

from tests.unit.reports.synthetic_suite import RunParameters, make_suite
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main

SMALL = RunParameters(frame_count=200)


@pytest.mark.parametrize("others", [(), ("notes.txt",), ("suite.json",)], ids=str)
def test_a_folder_without_a_run_is_refused_and_not_touched(
    others: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in others:
        (tmp_path / name).write_text("{}")
    assert main(["judge", str(tmp_path)]) == exit_code.INCONCLUSIVE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(
        f"windtunnel: {tmp_path}: expected a run folder, which contains run.json"
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(others)


def test_nothing_is_judged_if_one_of_several_folders_is_not_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_suite(tmp_path / "suite", SMALL).runs()[0]
    run.verdict.unlink()
    other = tmp_path / "other"
    other.mkdir()
    assert main(["judge", str(run.path), str(other)]) == exit_code.INCONCLUSIVE
    assert str(other) in capsys.readouterr().err
    assert not run.verdict.exists()


def test_a_run_that_was_killed_before_its_manifest_never_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_suite(tmp_path / "suite", SMALL).runs()[0]
    run.manifest.unlink()
    assert main(["judge", str(run.path)]) == exit_code.INCONCLUSIVE
    assert capsys.readouterr().out.startswith("INCONCLUSIVE")


def test_a_suite_selects_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "PASS"))
    code = main(["judge", "--json", str(suite.path)])
    output = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["run_dir"] for row in output} == {str(run.path) for run in suite.runs()}
    assert len(output) == 2
    # The synthetic runs lack evidence of a real run, which the judge must report.
    assert {row["outcome"] for row in output} == {"INCONCLUSIVE"}
    assert code == exit_code.INCONCLUSIVE


def test_judging_again_gives_the_same_verdict(tmp_path: Path) -> None:
    run = make_suite(tmp_path / "suite", SMALL).runs()[0]
    main(["judge", str(run.path)])
    first = run.verdict.read_bytes()
    main(["judge", str(run.path)])
    assert run.verdict.read_bytes() == first


def test_prints_violated_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_suite(tmp_path / "suite", SMALL).runs()[0]
    main(["judge", str(run.path)])
    brief = capsys.readouterr().out
    assert "payload.bin" in brief
    assert "\n    PASS" not in brief
    main(["judge", "-v", str(run.path)])
    assert "\n    PASS" in capsys.readouterr().out


def test_report_of_a_suite_and_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    run = suite.runs()[0]
    assert main(["report", str(suite.path)]) == exit_code.OK
    assert main(["report", str(run.path)]) == exit_code.OK
    assert capsys.readouterr().out.split() == [
        str(suite.report),
        str(SuiteDir(run.path).report),
    ]
    assert suite.report.is_file()
    assert SuiteDir(run.path).report.is_file()


def test_report_of_anything_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == exit_code.INCONCLUSIVE
    assert "neither a suite nor a run folder" in capsys.readouterr().err
