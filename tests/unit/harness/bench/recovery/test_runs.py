"""The runs of the recovery benchmark, and which of them count."""

import json
import pickle

import pytest

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.bench.recovery import runs
from windtunnel.harness.bench.recovery.figures import PATHS
from windtunnel.harness.bench.recovery.saved_readings import SavedReadings
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.cancel import Cancelled
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.suite.suite import RunSummary, SuiteResult


class Runner:
    """A replacement for run_suite, whose runs have synthetic results."""

    def __init__(self) -> None:
        self.calls, self.outcome, self.exit_code = [], "PASS", 0

    def __call__(self, files, *, seed, seeds, out, tested, receive, fidelity, jobs):
        names = tested.publisher.name, tested.subscriber.name
        pickle.dumps(receive)  # Jobs are pickled for other processes.
        self.calls.append((files[0].stem, names, seeds, dict(receive)))
        result = SuiteResult(self.exit_code, out / f"suite-{len(self.calls)}")
        for index in range(seeds):
            folder = RunDir(result.suite_dir / str(index))
            folder.path.mkdir(parents=True)
            # A delay of half of the round trip is the best one for the C driver.
            speed = (
                1e6 if not receive else 2e6 if receive.get("nak-delay") == "1250000ns" else 1.5e6
            )
            speed *= 10 if names == ("ours", "ours") else 1
            results = {
                "traffic": "s", "from_host": "a", "to_host": "b", "published_messages": 5,
                "delivered_messages": 5, "reached_bytes_per_s": speed, "finished_ns": 10**9,
            }  # fmt: skip
            document = {"schema": "windtunnel-verdict/1", "outcome": self.outcome, "reason": "r",
                        "gates": [], "checks": [], "results": [results]}  # fmt: skip
            folder.verdict.write_text(json.dumps(document))
            summary = RunSummary("x", seed + index, folder.path, self.outcome, "the reason")
            result.runs.append(summary)
        return result


@pytest.fixture
def runner(monkeypatch):
    made = Runner()
    monkeypatch.setattr(runs, "run_suite", made)
    monkeypatch.setattr(runs.labs, "require", lambda *_: None)
    return made


def measured(tmp_path, *cases, rounds=2, notes=None):
    note = (lambda text: None) if notes is None else notes.append
    return runs.measure(rounds, cases, tmp_path, note)


def test_the_c_driver_is_tuned_by_the_fastest_delay_of_a_sweep(runner, tmp_path):
    found = measured(tmp_path, "long-path")
    tuned = [each for each in runner.calls if each[3]]
    assert len(tuned) == len(runs.SWEEP) + 1
    assert tuned[-1] == ("long-path", ("pyaeron",) * 2, 2, {"nak-delay": "1250000ns"})
    assert {(each.driver, each.values["goodput"]) for each in found} == {
        ("ours", 10.0), ("c", 1.0), ("c-tuned", 2.0), ("our-receiver", 1.0), ("our-sender", 1.0),
    }  # fmt: skip
    assert not list(tmp_path.glob("suite-*"))


def test_the_first_run_of_each_setup_is_shown_before_it_is_removed(runner, tmp_path):
    seen = []

    def on_first_run(path, setup, run):
        seen.append((path.case, setup.name, run.verdict.is_file()))

    runs.measure(2, ["no-loss", "no-loss-netns"], tmp_path, print, on_first_run)
    assert seen == [
        ("no-loss", "ours", True), ("no-loss", "c", True),
        ("no-loss-netns", "ours", True), ("no-loss-netns", "c", True),
    ]  # fmt: skip


def test_a_tail_has_twenty_runs_and_drivers_alternate_in_other_setups(runner, tmp_path):
    measured(tmp_path, "tail", "no-loss-netns")
    assert [each[:3] for each in runner.calls] == [
        ("no-loss", ("ours", "ours"), 1),
        ("no-loss", ("pyaeron", "pyaeron"), 1),
        ("no-loss", ("pyaeron", "pyaeron"), 1),
        ("no-loss", ("ours", "ours"), 1),
        *[("tail", ("ours", "ours"), 20)] * 20,
    ]


def test_saved_readings_are_not_measured_again(runner, tmp_path):
    def measure(rounds):
        saved = SavedReadings(tmp_path / "readings.jsonl")
        return runs.measure(rounds, ["bursts"], tmp_path, print, saved=saved)

    first = measure(1)
    # Two setups, and the delays of the sweep, one of which is that of the third setup.
    assert len(runner.calls) == 2 + len(runs.SWEEP)
    runner.calls.clear()
    assert measure(1) == first
    assert runner.calls == []
    more = measure(3)
    assert [each[2] for each in runner.calls] == [2, 2, 2]
    assert sorted((each.driver, each.round_index) for each in more) == [
        (driver, seed) for driver in ("c", "c-tuned", "ours") for seed in range(3)
    ]


def test_void_readings_are_not_saved(runner, tmp_path):
    runner.outcome = "HARNESS"
    file = tmp_path / "readings.jsonl"
    runs.measure(1, ["group"], tmp_path, print, saved=SavedReadings(file))
    assert not file.exists()


@pytest.mark.parametrize(
    ("outcome", "void"),
    [
        ("PASS", set()),
        ("FAIL", {"ours"}),
        ("HARNESS", {"ours", "c"}),
        ("UNSUPPORTED", {"ours", "c"}),
    ],
)
def test_a_failed_run_of_the_c_driver_is_a_measurement_and_one_of_ours_is_void(
    runner, tmp_path, outcome, void
):
    runner.outcome = outcome
    found = measured(tmp_path, "group")
    assert {each.driver for each in found if each.void} == void
    assert all(bool(each.values) != bool(each.void) for each in found)


def test_a_signal_ends_the_benchmark_with_the_run(runner, tmp_path):
    runner.outcome, runner.exit_code = "CANCELLED", 130
    with pytest.raises(Cancelled, match="SIGINT"):
        measured(tmp_path, "long-path")
    assert len(runner.calls) == 1


def test_paths_over_real_sockets_are_left_out_without_privileges(runner, tmp_path, monkeypatch):
    def require(fidelity, *_):
        if fidelity != "sim":
            raise LabError("no namespaces")

    monkeypatch.setattr(runs.labs, "require", require)
    notes = []
    assert measured(tmp_path, "no-loss-netns", notes=notes) == []
    assert notes == ["left out: no-loss-netns: no namespaces"]


def test_the_command_prints_each_figure_and_writes_all_readings(runner, tmp_path, capsys):
    output = tmp_path / "recovery.json"
    words = ["bench", "--only", "recovery,bursts", "--rounds", "1", "--json", str(output)]
    assert main([*words, "--enforce"]) == 0
    (line,) = [
        each for each in capsys.readouterr().out.splitlines() if each.startswith("bursts-goodput")
    ]
    assert line.split() == [
        "bursts-goodput", "MB/s", "1.00", "1.50", "10.0", "6.67x", ">=", "5x", "10x", "virtual"
    ]  # fmt: skip
    document = json.loads(output.read_text())
    assert document["schema"] == "windtunnel-bench-recovery/1"
    assert [each["name"] for each in document["figures"]] == ["bursts-goodput"]
    assert len(document["readings"]) == 3


def test_the_page_shows_each_path_with_its_figures_and_its_first_round(runner, tmp_path):
    page = tmp_path / "recovery.html"
    words = ["bench", "--only", "recovery,bursts,overtaken", "--rounds", "1", "--report", str(page)]
    assert main(words) == 0
    text = page.read_text()
    summary, card = text[: text.index("<h2>bursts</h2>")], text[text.index("<h2>bursts</h2>") :]
    assert '<td class="text"><a href="#path-bursts">bursts</a></td>' in summary
    for part in (summary, card):
        assert '<td class="text">goodput</td><td class="">MB/s</td><td class="">1.00</td>' in part
    assert card.index("6.67x") < card.index("<h2>overtaken</h2>")
    assert "bursts of 50" in text
    assert '<th class="text">C tuned</th>' in text
    assert "<code>windtunnel run recovery/bursts --fidelity sim</code>" in card
    assert text.count("Streams of the first round") == 2
    assert "<title>INCONCLUSIVE" in text  # `overtaken` has no losses here, so it has no figure.


def test_only_the_recovery_case_has_a_file_of_readings(tmp_path, capsys):
    readings = str(tmp_path / "readings.jsonl")
    assert main(["bench", "--only", "udp-32", "--readings", readings]) == 64
    assert "expected --only recovery" in capsys.readouterr().err


@pytest.mark.parametrize("case", ["recovery", "udp-32"])
def test_a_page_needs_a_folder(tmp_path, capsys, case):
    nowhere = str(tmp_path / "missing" / "page.html")
    assert main(["bench", "--only", case, "--report", nowhere]) == 64
    assert "expected a file in an existing folder" in capsys.readouterr().err


def test_a_missed_floor_and_an_unknown_path_are_exit_codes(runner, capsys):
    runner.outcome = "FAIL"
    assert main(["bench", "--only", "recovery,bursts", "--rounds", "1", "--enforce"]) == 1
    assert main(["bench", "--only", "recovery,bursts", "--rounds", "1"]) == 2
    assert main(["bench", "--only", "recovery,short"]) == 64
    assert "expected one of long-path, fast-path" in capsys.readouterr().err


def test_each_path_is_a_scenario():
    for path in PATHS:
        assert (runs.installation.SCENARIOS / "recovery" / f"{path.name}.yaml").is_file()
