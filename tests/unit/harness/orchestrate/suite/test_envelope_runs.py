"""The measurement of envelopes, from written run folders in place of runs."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite import envelope_runs
from windtunnel.harness.orchestrate.suite.envelope_runs import EnvelopeRuns
from windtunnel.harness.orchestrate.suite.suite import RunSummary
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.checks.envelope.bands import case_digest, envelopes
from windtunnel.harness.verdict.checks.envelope.within_envelope import NAME

ROW = ResultRow("one", "a", "b", gaps=100, naks=100, requested_gaps=100)


def run_folder(path, peer="ours", outcome="PASS", failed=(), row=ROW):
    run = make_run(path)
    run.manifest.subjects = {"a": SubjectFacts("publisher", peer, version=f"{peer} 1")}
    run.write()
    checks = [{"name": each, "outcome": "FAIL"} for each in failed]
    document = {"outcome": outcome, "checks": checks, "results": [row.as_document()]}
    write_document(RunDir(path).verdict, document)
    return path


def test_the_distribution_of_a_figure_is_that_of_all_runs(tmp_path):
    runs = EnvelopeRuns(first_seed=3, seeds=4)
    values = [100, 140, 110, 130]
    for at, naks in enumerate(values):
        folder = run_folder(tmp_path / str(at), row=replace(ROW, naks=naks))
        assert runs.add(folder)
        assert not folder.exists()
    assert runs.add(run_folder(tmp_path / "c", peer="pyaeron", row=replace(ROW, naks=300)))
    file = tmp_path / "bands.json"
    assert runs.write(file) == 1
    (found,) = envelopes(file).values()
    assert (found.first_seed, found.seeds, found.drivers) == (3, 4, ("aeron-c", "ours"))
    assert found.digest == case_digest(make_run(tmp_path).case)
    measured = found.streams["one at b"]["naks_per_gap"]
    ours = measured["ours"]
    assert (ours.runs, ours.lowest, ours.median, ours.highest) == (4, 1.0, 1.2, 1.4)
    assert measured["aeron-c"].median == 3.0


@pytest.mark.parametrize(
    ("outcome", "failed", "counts"),
    [
        ("PASS", (), True),
        ("FAIL", (NAME,), True),
        ("FAIL", ("naks_paced",), False),
        ("FAIL", (NAME, "naks_paced"), False),
        ("INCONCLUSIVE", (), False),
        ("HARNESS", (), False),
    ],
)
def test_only_runs_that_pass_every_other_check_count(tmp_path, outcome, failed, counts):
    folder = run_folder(tmp_path / "run", outcome=outcome, failed=failed)
    assert EnvelopeRuns(1, 1).add(folder) is counts
    assert folder.exists() is not counts


def test_a_folder_without_a_verdict_does_not_count(tmp_path):
    assert not EnvelopeRuns(1, 1).add(make_run(tmp_path / "run").write())


def test_a_case_whose_links_may_change_has_no_figures(tmp_path):
    folder = run_folder(tmp_path / "run")
    case = Case.read(RunDir(folder).case)
    case.model_copy(update={"live": True}).write(RunDir(folder).case)
    runs = EnvelopeRuns(1, 1)
    assert runs.add(folder)
    assert runs.write(tmp_path / "bands.json") == 0


def test_the_envelopes_of_other_scenarios_are_kept(tmp_path):
    file = tmp_path / "bands.json"
    other = {"digest": "", "first_seed": 1, "seeds": 1, "drivers": {}, "streams": {}}
    document = {"schema": "windtunnel-envelopes/1", "scenarios": {"z/other": other}}
    write_document(file, document)
    runs = EnvelopeRuns(1, 1)
    runs.add(run_folder(tmp_path / "run"))
    runs.write(file)
    name = make_run(tmp_path).case.name
    assert list(json.loads(file.read_text())["scenarios"]) == [name, "z/other"]


def test_each_driver_has_its_number_of_seeds(tmp_path, monkeypatch):
    asked, rounds = [], []

    def run_suite(files, **options):
        asked.append((options["seed"], options["tested"], options["fidelity"], options["jobs"]))
        outcome = "FAIL" if options["seed"] == 8 else "PASS"
        failed = ("naks_paced",) if outcome == "FAIL" else ()
        folder = run_folder(tmp_path / str(len(asked)), outcome=outcome, failed=failed)
        run = RunSummary("made/by-hand", options["seed"], folder, outcome, "reason")
        return SimpleNamespace(runs=[run], raise_if_cancelled=lambda: None)

    monkeypatch.setattr(envelope_runs, "run_suite", run_suite)
    monkeypatch.setattr(envelope_runs.peers, "pair", lambda a, b, fidelity, store: (a, b))
    runs = EnvelopeRuns(7, 2)
    runs.measure(
        [tmp_path / "made.yaml"],
        {"ours": 2, "pyaeron": 1},
        jobs=2,
        out=tmp_path,
        on_round=lambda *arguments: rounds.append(arguments),
    )
    assert asked == [
        (7, ("ours", "ours"), "sim", 2),
        (8, ("ours", "ours"), "sim", 2),
        (7, ("pyaeron", "pyaeron"), "sim", 2),
    ]
    assert [each[:3] for each in rounds] == [("ours", 7, 1), ("ours", 8, 0), ("pyaeron", 7, 1)]
    assert [each.outcome for each in rounds[1][3]] == ["FAIL"]
