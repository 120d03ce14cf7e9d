"""`windtunnel envelope`, with the runs replaced."""

import pytest

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.suite import envelope_runs
from windtunnel.harness.orchestrate.suite.suite import RunSummary


@pytest.fixture
def asked(monkeypatch, tmp_path):
    seen = {}

    class Runs(envelope_runs.EnvelopeRuns):
        def measure(self, files, drivers, *, jobs, out, on_round):
            seen.update(files=files, drivers=drivers, jobs=jobs)
            bad = RunSummary("loss/two", 4, tmp_path, "FAIL", "naks_paced: too soon")
            on_round("ours", 4, 1, [bad])

    monkeypatch.setattr(envelope_runs, "EnvelopeRuns", Runs)
    return seen


def test_the_chosen_scenarios_and_drivers_are_measured(asked, tmp_path, capsys):
    file = tmp_path / "bands.json"
    arguments = ["envelope", "loss/reliable-2pct", "--driver", "ours=3", "--driver", "pyaeron=2"]
    assert main([*arguments, "--jobs", "2", "--file", str(file)]) == exit_code.OK
    assert [each.stem for each in asked["files"]] == ["reliable-2pct"]
    assert (asked["drivers"], asked["jobs"]) == ({"ours": 3, "pyaeron": 2}, 2)
    captured = capsys.readouterr()
    assert captured.out == f"wrote 0 envelopes to {file}\n"
    assert captured.err.splitlines() == [
        "1 scenario, 5 runs of each",
        "ours seed 4: 1 run counts",
        "  FAIL loss/two: naks_paced: too soon",
    ]
    assert file.exists()


def test_without_a_scenario_all_simulated_ones_but_findings_are_measured(asked, tmp_path):
    assert main(["envelope", "--file", str(tmp_path / "bands.json")]) == exit_code.OK
    folders = {each.parent.name for each in asked["files"]}
    assert {"loss", "exam", "recovery"} <= folders
    assert not folders & {"findings", "compose"}


@pytest.mark.parametrize("value", ["ours", "=3", "ours=0", "ours=x", "ours=1001"])
def test_a_driver_without_a_number_of_seeds_is_a_usage_error(asked, value, capsys):
    assert main(["envelope", "--driver", value]) == exit_code.USAGE
    assert f"expected PEER=SEEDS with 1 to 1000 seeds, found '{value}'" in capsys.readouterr().err
    assert not asked


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("archive/disk-full",), "expected a scenario that supports sim, found netns"),
        (("loss/reliable-2pct", "--driver", "foo=3"), "unknown peer 'foo'"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_starts(asked, arguments, text, capsys):
    assert main(["envelope", *arguments]) == exit_code.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line
    assert not asked


def test_a_scenario_without_simulations_is_left_out_of_several(asked, tmp_path, capsys):
    file = tmp_path / "bands.json"
    names = ["archive/disk-full", "loss/reliable-2pct"]
    assert main(["envelope", *names, "--file", str(file)]) == exit_code.OK
    assert [each.stem for each in asked["files"]] == ["reliable-2pct"]
    assert "left out: " in capsys.readouterr().err
