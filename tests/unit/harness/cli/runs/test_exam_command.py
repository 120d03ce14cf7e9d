"""`windtunnel exam` and `run --mutant`, with the runs replaced: no lab is built here."""

import json
from typing import Any

import pytest

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.exam import examine, mutated_driver
from windtunnel.harness.exam.document import Exam, ExamRun, MutantRow
from windtunnel.harness.orchestrate.subjects.subject import OURS_WITH_OURS
from windtunnel.harness.orchestrate.suite import runner
from windtunnel.harness.orchestrate.suite.runner import SuiteResult

NAMES = ["naks-sent-counted-twice", "naks-sent-total-not-counted"]


def run(outcome: str) -> ExamRun:
    checks = ["some_check"] if outcome == "FAIL" else []
    return ExamRun("exam/loss", outcome, "why", checks, 1.0, ["windtunnel"])


@pytest.fixture
def exams(monkeypatch):
    """Results of an exam: of the driver without a defect, of each mutant, and of a signal."""
    answer: dict[str, Any] = {"sound": "PASS", "mutants": "FAIL", "asked": None, "made_for": []}

    def examine_mutants(mutation_run, listener):
        answer["mutation_run"] = mutation_run
        exam = Exam("netns", [], 1, sound=[run(answer["sound"])])
        listener.on_driver_without_defect(exam.sound[0])
        if not exam.is_void:
            for each in mutation_run.mutants:
                row = MutantRow(each.name, each.about, each.file, [], "", list(each.scenarios))
                row.runs = [run(answer["mutants"])]
                exam.mutants.append(row)
                listener.on_mutant(row)
            exam.is_whole = answer["asked"] is None
        mutation_run.folder.mkdir(parents=True)
        exam.write(mutation_run.folder / examine.DOCUMENT)
        return exam, answer["asked"]

    def prepare(mutant, place, report, *, mutants, variant):
        assert mutant is None
        answer["set"] = variant, len(mutants)
        answer["made_for"].append(place)
        report(f"compiling for {place}")
        return {}

    monkeypatch.setattr(examine, "examine", examine_mutants)
    monkeypatch.setattr(mutated_driver, "prepare", prepare)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", lambda: None)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.labs.require", lambda *_: None)
    return answer


def execute(tmp_path, *more):
    return main(["exam", "--mutants", "naks-sent-*", "--out", str(tmp_path), *more])


def test_an_exam_with_all_mutants_killed_passes(exams, tmp_path, capsys):
    assert execute(tmp_path, "--jobs", "3", "--keep") == exit_code.OK
    output = capsys.readouterr()
    assert "2 of 2 mutants killed, 100.0%" in output.out
    assert f"[1/2] killed    {NAMES[0]}  exam/loss: some_check" in output.err
    assert "unmodified driver  exam/loss: PASS" in output.err
    assert exams["made_for"] == ["sim"]
    assert "compiling for sim" in output.err
    mutation_run = exams["mutation_run"]
    assert (mutation_run.jobs, mutation_run.keeps_all) == (3, True)
    assert [each.name for each in mutation_run.mutants] == NAMES
    assert "| killed |" in (mutation_run.folder / "exam.md").read_text()


def test_survivors_without_a_reason_fail_the_exam(exams, tmp_path, capsys):
    exams["mutants"] = "PASS"
    assert execute(tmp_path) == 1
    output = capsys.readouterr().out
    assert "not explained" in output
    assert "0 of 2 mutants killed" in output


@pytest.mark.parametrize(
    ("outcome", "code"), [("FAIL", 2), ("INCONCLUSIVE", 2), ("HARNESS", 3), ("UNSUPPORTED", 2)]
)
def test_a_sound_driver_that_does_not_pass_makes_the_exam_void(
    exams, tmp_path, capsys, outcome, code
):
    exams["sound"] = outcome
    assert execute(tmp_path) == code
    assert "The exam is void" in capsys.readouterr().out


def test_a_signal_gives_its_own_exit_code(exams, tmp_path, capsys):
    exams["asked"] = exit_code.INTERRUPTED
    assert execute(tmp_path) == exit_code.INTERRUPTED
    output = capsys.readouterr()
    assert "interrupted" in output.err
    assert "not all mutants were run" in output.out


def test_json_is_the_whole_exam(exams, tmp_path, capsys):
    assert execute(tmp_path, "--json") == exit_code.OK
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "windtunnel-exam/1"
    assert [row["name"] for row in document["mutants"]] == NAMES


def test_a_pattern_that_matches_none_is_refused(exams, tmp_path, capsys):
    assert main(["exam", "--mutants", "frob*", "--out", str(tmp_path)]) == exit_code.USAGE
    assert "'frob*'" in capsys.readouterr().err
    assert "mutation_run" not in exams


def test_the_list_runs_nothing(exams, capsys):
    assert main(["exam", "--list", "--mutants", "naks-sent-*"]) == exit_code.OK
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == NAMES
    assert main(["exam", "--list", "--json"]) == exit_code.OK
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} > set(NAMES)
    assert "mutation_run" not in exams


@pytest.fixture
def suites(monkeypatch, tmp_path):
    """The options that the runner is called with, and the fidelity of the prepared mutants."""
    seen: dict[str, Any] = {}

    def run_suite(files, **options):
        seen.update(options)
        return SuiteResult(0, tmp_path, [])

    def prepare(mutant, fidelity, report, **_options):
        seen["made_for"] = fidelity
        report("compiling")
        return {"PYTHONPATH": "somewhere"}

    monkeypatch.setattr(runner, "run_suite", run_suite)
    monkeypatch.setattr(mutated_driver, "prepare", prepare)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", lambda: None)
    monkeypatch.setattr("windtunnel.reports.page.write_suite_report", lambda folder: folder)
    return seen


def test_a_run_can_have_one_mutant(suites, tmp_path, capsys):
    options = ["--fidelity", "netns", "--mutant", NAMES[0], "--out", str(tmp_path)]
    assert main(["run", "exam/loss", *options]) == exit_code.OK
    tested = suites["tested"]
    assert tested.subscriber.mutant == NAMES[0]
    assert tested.subscriber.environment["PYTHONPATH"] == "somewhere"
    assert tested.publisher == OURS_WITH_OURS.publisher
    assert suites["made_for"] == "netns"
    assert "compiling" in capsys.readouterr().err


def test_a_run_without_the_option_has_no_mutant(suites, tmp_path):
    assert main(["run", "exam/loss", "--fidelity", "netns", "--out", str(tmp_path)]) == exit_code.OK
    assert suites["tested"] == OURS_WITH_OURS


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--mutant", "frob", "--fidelity", "netns"], "'frob'"),
        (["--mutant", NAMES[0], "--fidelity", "compose"], "netns"),
        (["--mutant", NAMES[0], "--kernel", "uml"], "--kernel host"),
        (["--mutant", NAMES[0], "--fidelity", "netns", "--subscriber", "pyaeron"], "pyaeron"),
    ],
)
def test_a_mutant_that_cannot_run_is_refused(suites, capsys, options, expected):
    assert main(["run", "exam/loss", *options]) == exit_code.USAGE
    assert expected in capsys.readouterr().err
    assert "tested" not in suites


def test_generated_mutants_are_another_set(exams, tmp_path, capsys):
    arguments = ["exam", "--generate", "5", "--seed", "3", "--out", str(tmp_path)]
    assert main(arguments) == exit_code.OK
    mutation_run = exams["mutation_run"]
    assert exams["set"] == ("generated-5-3", 5)
    assert mutation_run.generated == "generated-5-3"
    assert mutation_run.sound == "generated-5-3-000"
    assert [each.name for each in mutation_run.mutants][-1] == "generated-5-3-005"
