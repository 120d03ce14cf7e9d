"""The cases of bench that run alone print figures, floors and what is left out."""

import json

import pytest

from windtunnel.harness.artifact.middlebox.ledger import LinkAccount
from windtunnel.harness.bench import runs as bench_runs
from windtunnel.harness.bench.runs import MeasuredRuns
from windtunnel.harness.calibration import throughput
from windtunnel.harness.calibration.throughput import Step
from windtunnel.harness.cli.bench.bench_alone import _read_by_tshark
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.reports.analysis import benchmark
from windtunnel.reports.analysis.benchmark import ReaderUnavailable


def test_the_analysis_is_measured_alone(monkeypatch, capsys, tmp_path):
    row = {"engine": "local", "frames_per_s": 2e6, "frames_per_cpu_s": 2e6, "memory_mib": 300.0}
    monkeypatch.setattr(benchmark, "measure", lambda *_: [{**row, "wall_s": 1.0}])
    output = tmp_path / "bench.json"
    assert main(["bench", "--only", "analyze", "--json", str(output)]) == 0
    assert "local      2,000,000 frames/s" in capsys.readouterr().out
    assert json.loads(output.read_text())["schema"] == "windtunnel-bench-analysis/1"


def test_a_machine_without_tshark_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReaderUnavailable, match="tshark is not on PATH"):
        _read_by_tshark(tmp_path / "x.pcap")


def step(ordered_per_s, *, sent_per_s=None, out=1_000, lag_ns=100_000, **account):
    there = LinkAccount(datagrams_in=out, datagrams_out=out, lag_ns={"p50": lag_ns}, **account)
    return Step(ordered_per_s, sent_per_s or ordered_per_s, 1_000, there)


@pytest.mark.parametrize(
    ("made", "trouble"),
    [
        (step(50_000), ""),
        (step(50_000, out=997, kernel_drops=3), "3 of 1000 datagrams lost, 3 by the kernel"),
        (step(50_000, datagrams_dropped=2), "-2 datagrams are unaccounted for"),
        (step(50_000, lag_ns=3_000_000), "its median lag is 3.0 ms"),
        (step(50_000, sent_per_s=40_000), "the sender reached only 40,000 datagrams/s"),
    ],
)
def test_a_step_holds_if_nothing_was_lost_or_late(made, trouble):
    assert trouble in made.trouble
    assert bool(made.trouble) == bool(trouble)


@pytest.fixture
def lab(monkeypatch):
    """Synthetic figures of a lab: steps of the relay, and runs by fidelity."""
    steps = [step(50_000), step(75_000), step(100_000, lag_ns=9_000_000)]
    made = {"netns": MeasuredRuns("netns", 16, 24.0), "compose": MeasuredRuns("compose", 8, 60.0)}

    def measure_runs(fidelity, seeds, out):
        if fidelity not in made:
            raise LabError("no engine answers")
        return made[fidelity]

    monkeypatch.setattr(labs, "require", lambda *_: None)
    monkeypatch.setattr(throughput, "relay_steps", lambda seconds, report: steps)
    monkeypatch.setattr(bench_runs, "measure_runs", measure_runs)
    return steps, made


def test_the_lab_is_printed_with_its_floors(lab, capsys, tmp_path):
    output = tmp_path / "lab.json"
    assert main(["bench", "--only", "lab", "--enforce", "--json", str(output)]) == 0
    out = capsys.readouterr().out
    assert "relay       75,000 datagrams/s of 1 kB (at least 50,000); then the relay fell" in out
    assert "netns           40 runs/min (at least 20); 16 runs in 24.0 s" in out
    assert "compose          8 runs/min (at least 6)" in out
    document = json.loads(output.read_text())
    assert document["schema"] == "windtunnel-bench-lab/1"
    assert [each["value"] for each in document["rows"]] == [75_000, 40.0, 8.0]


def test_a_missed_floor_is_an_exit_code_if_floors_are_enforced(lab, capsys):
    lab[0].pop(1)
    lab[0][0] = step(25_000)
    assert main(["bench", "--only", "lab", "--enforce"]) == 1
    assert "25,000 datagrams/s of 1 kB (at least 50,000 MISSED)" in capsys.readouterr().out
    assert main(["bench", "--only", "lab"]) == 0


def test_an_unavailable_fidelity_is_left_out_and_a_bad_run_is_void(lab, capsys):
    del lab[1]["compose"]
    assert main(["bench", "--only", "lab"]) == 0
    assert "compose  left out: no engine answers" in capsys.readouterr().out
    failed = "1 of 16 runs did not PASS; x seed 1: FAIL: y"
    lab[1]["netns"] = MeasuredRuns("netns", 16, 24.0, failed)
    assert main(["bench", "--only", "lab"]) == 2
    assert "netns    VOID: 1 of 16 runs did not PASS" in capsys.readouterr().out
