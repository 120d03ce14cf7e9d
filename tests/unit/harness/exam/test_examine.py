"""An exam runs the driver without a defect first, then each mutant until it is killed."""

import json
import os
import signal
import threading
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from windtunnel.harness.exam.document import ExamRun, MutantRow
from windtunnel.harness.exam.evidence_difference import Difference
from windtunnel.harness.exam.examine import DOCUMENT, examine
from windtunnel.harness.exam.markdown import UNEXPLAINED, exam_markdown
from windtunnel.harness.exam.mutant import NONE, Mutant
from windtunnel.harness.exam.mutation_run import MutationRun
from windtunnel.harness.exam.running_exam import WITHOUT_DEFECT
from windtunnel.harness.exam.worker_run import EXECUTIONS_FILE, RUN_LIMIT_S

SEED = 40


def mutant(name, *scenarios, because="", killed_by=()):
    return Mutant(
        name=name, about=f"About {name}.", file="driver/x.py", find="a", replace="b",
        side="sender", scenarios=scenarios, killed_by=killed_by, survives_because=because,
    )  # fmt: skip


class Runs:
    """Outcomes by (scenario, mutant), a list for consecutive runs. All other runs pass."""

    def __init__(self, outcomes, during=lambda name: None, counts=()):
        self.outcomes = outcomes
        self.counts = dict(counts)
        self.created = []
        self.places = []
        self.limits = []
        self._during = during

    def __call__(self, scenario, name, fidelity, folder, stop, seed_index, limit_s):
        self.limits.append((name, limit_s))
        self._during(name)
        self.created.append((scenario, name))
        self.places.append(fidelity)
        (folder / "suite").mkdir(parents=True, exist_ok=True)
        if scenario in self.counts:
            (folder / EXECUTIONS_FILE).write_bytes(array("q", self.counts[scenario]).tobytes())
        outcome = self.outcomes.get((scenario, name, seed_index), "PASS")
        outcome = self.outcomes.get((scenario, name), outcome)
        if isinstance(outcome, list):
            outcome = outcome.pop(0)
        if stop.is_set():
            outcome = "CANCELLED"
        checks = ["some_check"] if outcome == "FAIL" else []
        made = ExamRun(scenario, outcome, "why", checks, 1.0, ["windtunnel"], str(folder / "suite"))
        made.seed, made.executions = SEED + seed_index, 3 if name == "idles" else 0
        return made


class RecordingListener:
    """A listener that records the names of mutants in each call."""

    def __init__(self):
        self.names = []

    def on_driver_without_defect(self, run):
        pass

    def on_mutant(self, row):
        self.names.append(row.name)

    def on_repeat(self, name, run):
        self.names.append((name, run.scenario))


def examine_mutants(tmp_path, mutants, outcomes, **options):
    runs = Runs(outcomes, options.pop("during", lambda name: None), options.pop("counts", ()))
    listener = options.pop("listener", RecordingListener())
    compare = options.pop("compare", lambda sound, other: [])
    mutation_run = MutationRun(mutants, tmp_path / "exam", **options)
    return (*examine(mutation_run, listener, runs, compare), runs)


def states(exam):
    return {row.name: row.state for row in exam.mutants}


def test_a_mutant_is_run_until_a_scenario_kills_it(tmp_path):
    mutants = [mutant("early", "x", "y"), mutant("late", "x", "y"), mutant("never", "x", "y")]
    exam, requested, runs = examine_mutants(
        tmp_path, mutants, {("x", "early"): "FAIL", ("y", "late"): "FAIL"}
    )
    assert requested is None
    assert states(exam) == {"early": "killed", "late": "killed", "never": "survived"}
    assert runs.created[:2] == [("x", NONE), ("y", NONE)]
    assert ("y", "early") not in runs.created
    assert [row.name for row in exam.unexplained] == ["never"]
    assert exam.is_whole
    assert not exam.is_passed


@pytest.mark.parametrize("outcome", ["INCONCLUSIVE", "HARNESS", "UNSUPPORTED"])
def test_only_a_fail_kills(tmp_path, outcome):
    exam, _, runs = examine_mutants(tmp_path, [mutant("one", "x", "y")], {("x", "one"): outcome})
    assert states(exam) == {"one": "undecided"}
    assert ("y", "one") in runs.created
    assert runs.created.count(("x", "one")) == (2 if outcome == "INCONCLUSIVE" else 1)


def test_an_inconclusive_mutant_is_run_again_after_all_others(tmp_path):
    outcomes = {("x", "one"): ["INCONCLUSIVE", "FAIL"], ("x", "two"): "FAIL"}
    listener = RecordingListener()
    exam, _, runs = examine_mutants(
        tmp_path, [mutant("one", "x", "y"), mutant("two", "x")], outcomes, listener=listener
    )
    assert states(exam) == {"one": "killed", "two": "killed"}
    assert exam.is_passed
    assert runs.created[2:] == [("x", "one"), ("y", "one"), ("x", "two"), ("x", "one")]
    assert listener.names == ["two", ("one", "x"), "one"]
    assert [run.before for run in exam.mutants[0].runs] == ["", "", "why"]
    assert "1 inconclusive run was repeated" in exam_markdown(exam)
    document = json.loads((tmp_path / "exam" / DOCUMENT).read_text())
    assert document["summary"]["again"] == 1
    assert [row["name"] for row in document["mutants"]] == ["one", "two"]
    assert not (tmp_path / "exam" / "one").exists()


def test_only_inconclusive_runs_are_repeated_and_not_in_parallel(tmp_path):
    outcomes = {("x", name): ["INCONCLUSIVE", "PASS"] for name in ("one", "two")}
    mutants = [mutant("one", "x", "y"), mutant("two", "x", "y")]
    under_way, beside = [], []

    class Counting(Runs):
        def __call__(self, scenario, name, fidelity, folder, stop, seed_index, limit_s):
            under_way.append(name)
            beside.append(len(under_way) - 1)
            try:
                return super().__call__(scenario, name, fidelity, folder, stop, seed_index, limit_s)
            finally:
                under_way.remove(name)

    runs = Counting(outcomes)
    exam, _ = examine(
        MutationRun(mutants, tmp_path / "exam", jobs=2),
        RecordingListener(),
        runs,
        lambda sound, other: [],
    )
    assert states(exam) == {"one": "survived", "two": "survived"}
    assert sorted(runs.created[6:]) == [("x", "one"), ("x", "two")]
    assert beside[6:] == [0, 0]


def test_an_inconclusive_run_of_the_driver_without_defect_is_repeated(tmp_path):
    exam, _, runs = examine_mutants(
        tmp_path,
        [mutant("one", "x")],
        {("x", NONE): ["INCONCLUSIVE", "PASS"], ("x", "one"): "FAIL"},
    )
    assert exam.is_passed
    assert [(run.outcome, run.before) for run in exam.sound] == [("PASS", "why")]
    assert runs.created == [("x", NONE), ("x", NONE), ("x", "one")]


def test_runs_of_the_driver_without_defect_do_not_share_a_folder(tmp_path):
    exam, _, _ = examine_mutants(
        tmp_path, [mutant("one", "x/one", "y")], {("x/one", "one"): "FAIL"}
    )
    assert len({run.folder for run in exam.sound}) == 2


@pytest.mark.parametrize("outcome", ["FAIL", "INCONCLUSIVE", "HARNESS"])
def test_a_driver_without_defect_that_does_not_pass_makes_it_void(tmp_path, outcome):
    exam, _, runs = examine_mutants(tmp_path, [mutant("one", "x", "y")], {("y", NONE): outcome})
    assert exam.is_void
    assert not exam.mutants
    assert not exam.is_passed
    assert {name for _, name in runs.created} == {NONE}
    assert "void" in exam_markdown(exam)


def test_it_is_passed_by_98_of_100_with_the_others_explained(tmp_path):
    mutants = [mutant(f"m{number}", "x", because="it does no harm") for number in range(100)]
    killed = {("x", f"m{number}"): "FAIL" for number in range(98)}
    assert examine_mutants(tmp_path / "a", mutants, killed)[0].is_passed
    killed.pop(("x", "m0"))
    assert not examine_mutants(tmp_path / "b", mutants, killed)[0].is_passed


def test_an_unexplained_survivor_fails_it_whatever_the_rate(tmp_path):
    mutants = [mutant(f"m{number}", "x") for number in range(100)]
    exam = examine_mutants(
        tmp_path, mutants, {("x", f"m{number}"): "FAIL" for number in range(99)}
    )[0]
    assert exam.kill_rate == 0.99
    assert not exam.is_passed
    assert UNEXPLAINED in exam_markdown(exam)


def test_folders_of_killed_mutants_are_removed_unless_kept(tmp_path):
    mutants = [mutant("dead", "x"), mutant("alive", "x")]
    outcomes = {("x", "dead"): "FAIL"}
    exam = examine_mutants(tmp_path, mutants, outcomes)[0]
    kept = {path.name for path in (tmp_path / "exam").iterdir()}
    assert kept == {"alive", f"{WITHOUT_DEFECT}-sim", DOCUMENT}
    assert exam.mutants[0].runs[0].folder == ""
    examine_mutants(tmp_path / "all", mutants, outcomes, keeps_all=True)
    assert (tmp_path / "all/exam/dead").is_dir()


def test_rows_keep_their_order_whichever_run_ends_first(tmp_path):
    gate = threading.Event()

    def during(name):
        if name == "slow":
            assert gate.wait(30)
        elif name == "quick":
            gate.set()

    mutants = [mutant("slow", "x"), mutant("quick", "x")]
    exam = examine_mutants(tmp_path, mutants, {}, during=during, jobs=2)[0]
    assert [row.name for row in exam.mutants] == ["slow", "quick"]


def test_the_document_reports_rate_state_and_reason(tmp_path):
    mutants = [mutant("dead", "x"), mutant("alive", "x", because="nobody looks")]
    examine_mutants(tmp_path, mutants, {("x", "dead"): "FAIL"})
    document = json.loads((tmp_path / "exam" / DOCUMENT).read_text())
    assert document["schema"] == "windtunnel-exam/1"
    assert document["summary"]["kill_rate"] == 0.5
    assert [row["state"] for row in document["mutants"]] == ["killed", "survived"]
    assert document["mutants"][0]["runs"][0]["checks"] == ["some_check"]


def test_a_signal_ends_the_exam_and_keeps_its_results(tmp_path):
    def during(name):
        if name == "second":
            os.kill(os.getpid(), signal.SIGINT)

    mutants = [mutant(name, "x") for name in ("first", "second", "third")]
    exam, requested, _ = examine_mutants(tmp_path, mutants, {("x", "first"): "FAIL"}, during=during)
    assert requested == 130
    assert not exam.is_whole
    assert states(exam).get("first") == "killed"
    assert (tmp_path / "exam" / DOCUMENT).is_file()


def test_a_row_without_runs_is_undecided():
    assert MutantRow("n", "a", "f", [], "", ["x"]).state == "undecided"


@pytest.mark.parametrize(
    ("requested", "places"), [(None, {"sim", "netns"}), ("netns", {"netns"}), ("sim", {"sim"})]
)
def test_each_mutant_runs_in_its_fidelity_and_the_driver_without_defect_in_all_of_them(
    tmp_path, requested, places
):
    real = mutant("real", "x").model_copy(update={"fidelity": "netns"})
    exam, _, runs = examine_mutants(tmp_path, [mutant("made", "x"), real], {}, fidelity=requested)
    assert set(runs.places) == places
    assert len(exam.sound) == len(places)


LATER = Difference("datagrams", "host a", 2_500_000, "no packet", "a NAK")


def test_a_survivor_with_an_effect_is_distinguished_from_one_without(tmp_path):
    def compare(sound, other):
        assert Path(sound.path).parts[-3:] == (f"{WITHOUT_DEFECT}-sim", "x-0", "suite")
        return [LATER] if other.path.parent.name == "changes" else []

    mutants = [mutant(name, "x") for name in ("changes", "idles", "dies", "sleeps")]
    exam = examine_mutants(tmp_path, mutants, {("x", "dies"): "FAIL"}, compare=compare)[0]
    changes, idles, dies, _ = exam.mutants
    assert changes.effect == (changes.runs[0], LATER)
    assert idles.effect is None
    assert idles.is_without_effect
    assert not changes.is_without_effect
    assert not dies.is_without_effect
    assert dies.runs[0].differences is None
    text = exam_markdown(exam)
    assert "1 survived with an effect, 2 without" in text
    assert "executed 3 times" in text
    assert "never executed" in text
    assert "in x with seed 40: datagrams at 2.500000 ms, host a: expected no packet" in text
    summary = json.loads((tmp_path / "exam" / DOCUMENT).read_text())["summary"]
    assert summary["survived_with_effect"] == ["changes"]
    assert summary["survived_without_effect"] == ["idles", "sleeps"]


def test_a_survivor_that_only_shifts_times_does_not_count(tmp_path):
    shifted = replace(LATER, shift_ns=20_000)

    def compare(sound, other):
        found = {"shifts": {"y": [shifted]}, "changes": {"x": [shifted], "y": [LATER]}}
        return found.get(other.path.parent.name, {}).get(sound.path.parent.name[0], [])

    names = ["generated-3-1-001", "shifts", "changes"]
    mutants = [mutant(name, "x", "y") for name in names]
    exam = examine_mutants(tmp_path, mutants, {("x", names[0]): "FAIL"}, compare=compare)[0]
    exam.generated = "generated-3-1"
    assert [row.is_shifted for row in exam.mutants] == [False, True, False]
    assert [row.name for row in exam.counted] == [names[0], "changes"]
    assert exam.mutants[2].effect == (exam.mutants[2].runs[1], LATER)
    text = exam_markdown(exam)
    assert "1 of 2 generated mutants with an effect killed" in text
    assert "1 survived with an effect, 1 with a shift, 0 without" in text
    assert "a shift by at most 20 us: in y with seed 40" in text
    assert "| driver/x.py | 1 | 2 | 1 | 0 |" in text
    summary = json.loads((tmp_path / "exam" / DOCUMENT).read_text())["summary"]
    assert summary["survived_with_effect"] == ["changes"]
    assert summary["survived_with_shift"] == ["shifts"]


def test_a_survivor_runs_with_more_seeds_until_one_kills_it(tmp_path):
    mutants = [mutant("late", "x", "y"), mutant("never", "x")]
    exam, _, _ = examine_mutants(tmp_path, mutants, {("y", "late", 1): "FAIL"}, seeds=3)
    assert states(exam) == {"late": "killed", "never": "survived"}
    of_late = [(run.scenario, run.seed) for run in exam.mutants[0].runs]
    assert of_late == [("x", 40), ("y", 40), ("x", 41), ("y", 41)]
    assert [run.seed for run in exam.mutants[1].runs] == [40, 41, 42]
    assert sorted(run.seed for run in exam.sound) == [40, 40, 41, 41, 42, 42]
    assert len({run.folder for run in exam.sound}) == 6


def test_of_generated_mutants_only_those_with_an_effect_count(tmp_path):
    changes = set()

    def compare(sound, other):
        return [LATER] if other.path.parent.name in changes else []

    def exam_of(folder, changing):
        total = 17 + changing + 30
        names = [f"generated-50-1-{number:03}" for number in range(1, total + 1)]
        changes.update(names[17 : 17 + changing])
        options = {"generated": "generated-50-1", "sound": "generated-50-1-000"}
        return examine_mutants(
            tmp_path / folder,
            [mutant(name, "x") for name in names],
            {("x", name): "FAIL" for name in names[:17]},
            compare=compare,
            counts={"x": [0] + total * [1]},
            **options,
        )[0]

    enough, short = exam_of("a", 3), exam_of("b", 4)
    assert (enough.kill_rate, enough.is_passed) == (0.85, True)
    assert not short.is_passed
    text = exam_markdown(enough)
    assert "17 of 20 generated mutants with an effect killed, 85.0% (at least 85%" in text
    assert "| driver/x.py | 17 | 20 | 0 | 30 |" in text


@pytest.mark.parametrize(("fidelity", "limit_s"), [("sim", 70.0), ("netns", RUN_LIMIT_S)])
def test_a_simulated_mutant_may_take_ten_times_as_long_as_the_sound_driver(
    tmp_path, fidelity, limit_s
):
    # A run of the driver without a defect takes 1 s.
    _, _, runs = examine_mutants(tmp_path, [mutant("one", "x")], {}, fidelity=fidelity)
    assert runs.limits == [(NONE, RUN_LIMIT_S), ("one", limit_s)]


def test_a_generated_mutant_runs_where_its_code_is_executed(tmp_path):
    mutants = [mutant(f"generated-3-1-{number:03}", "x", "y", "z") for number in (1, 2, 3)]
    # Mutant 3 is executed nowhere.
    counts = {"x": [0, 0, 5, 0], "y": [9, 1, 7, 0], "z": [0, 0, 0, 0]}
    options = {"generated": "generated-3-1", "sound": "generated-3-1-000", "seeds": 2}
    exam, _, runs = examine_mutants(tmp_path, mutants, {}, counts=counts, **options)
    ran = [[(run.scenario, run.seed) for run in row.runs] for row in exam.mutants]
    assert ran == [
        [("y", 40), ("y", 41)],
        [("y", 40), ("x", 40), ("y", 41), ("x", 41)],
        [],
    ]
    # The driver without a defect runs in every candidate, with the second seed only where needed.
    assert sorted((run.scenario, run.seed) for run in exam.sound) == [
        ("x", 40), ("x", 41), ("y", 40), ("y", 41), ("z", 40),
    ]  # fmt: skip
    assert len(runs.created) == 5 + 2 + 4
    never = exam.mutants[2]
    assert never.state == "survived"
    assert never.is_without_effect
    assert "never executed" in exam_markdown(exam)


def test_an_inconclusive_run_is_repeated_with_its_own_seed(tmp_path):
    outcomes = {("x", "one", 2): ["INCONCLUSIVE", "FAIL"]}
    exam, _, _ = examine_mutants(tmp_path, [mutant("one", "x")], outcomes, seeds=3)
    assert states(exam) == {"one": "killed"}
    assert [(run.seed, run.outcome) for run in exam.mutants[0].runs] == [
        (40, "PASS"), (41, "PASS"), (42, "INCONCLUSIVE"), (42, "FAIL"),
    ]  # fmt: skip


def test_runs_in_real_time_have_one_seed_and_are_not_compared(tmp_path):
    def compare(sound, other):
        raise AssertionError

    exam = examine_mutants(
        tmp_path, [mutant("one", "x")], {}, seeds=3, fidelity="netns", compare=compare
    )[0]
    assert len(exam.mutants[0].runs) == 1
    assert exam.mutants[0].runs[0].differences is None
    assert not exam.mutants[0].is_without_effect
