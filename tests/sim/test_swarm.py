"""The swarm: many seeds pass, an injected defect fails, and each trial can be reproduced."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import windtunnel.harness.cli.runs.swarm as command
from tests.sim.swarm_process import REPOSITORY, swarm
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.capture.pcap import read_capture
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.schema.act import ACTIONS
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.simulator.swarm.choice import Reader, choose
from windtunnel.harness.simulator.swarm.swarm import Swarm, SwarmSpec, run_trial
from windtunnel.harness.simulator.swarm.trial import Trial
from windtunnel.harness.simulator.swarm.trial_sabotage import SABOTAGES
from windtunnel.harness.simulator.world import world_state

SEEDS = 2_000
"""What fits into a test; `make nightly` makes 100,000."""
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("seeds", [SEEDS // 200, pytest.param(SEEDS, marks=pytest.mark.full)])
def test_seeds_cause_no_violation(tmp_path, seeds):
    code, lines, errors = swarm(tmp_path, "--seeds", str(seeds), "--jobs", "2")
    bad = [each for each in lines[:-1] if each["violation"] or each["defect"]]
    assert not bad, bad[0]
    assert code == 0, errors
    assert lines[-1]["trials"] == seeds
    assert sorted(each["seed"] for each in lines[:-1]) == list(range(seeds))


@pytest.mark.parametrize("seeds", [8, pytest.param(SEEDS, marks=pytest.mark.full)])
def test_seeds_cause_no_violation_with_recovery_modes(tmp_path, seeds):
    order = SwarmSpec(0, seeds, 0.0, 1, None, "", as_json=False, keep=None, modes=True)
    trials = Swarm(order, tmp_path)
    trials.run()
    bad = [*trials.violations, *trials.defects]
    assert not bad, (bad[0], order.repro(bad[0].seed))
    assert trials.count == seeds
    assert "--recovery-modes" in order.repro(0)


@pytest.mark.full
def test_a_copy_that_the_link_splits_may_be_lost(tmp_path):
    """Swapping a PAD with the first frame of the copy for another endpoint divides this copy, and
    its first part may arrive first. Then the image drops the whole other copy.
    """
    order = SwarmSpec(700_374, 1, 0.0, 1, None, "", as_json=False, keep=None, modes=True)
    trials = Swarm(order, tmp_path)
    trials.run()
    assert (trials.violations, trials.defects, trials.count) == ([], [], 1)


def test_copies_that_depart_one_after_another_fit_on_the_wire(tmp_path):
    """Each frame is copied three times, and the copies are due within 10 ms, but depart 40 us
    apart: up to 760 datagrams of up to 8 KiB wait.
    """
    result = run_trial(90_032_328, tmp_path)
    assert (result.violation, result.defect) == ("", "")


def is_alive(process: Path) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return "State:\tZ" not in (process / "status").read_text()
    except OSError:
        return False


def test_a_swarm_that_is_killed_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "windtunnel.harness.simulator", "swarm", "--json"]
    with subprocess.Popen(
        [*command, "--memory", str(tmp_path), "--seeds", "1000000", "--jobs", "2"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdout
        running.stdout.readline()
        tasks = Path(f"/proc/{running.pid}/task").glob("*/children")
        workers = [Path("/proc", each) for task in tasks for each in task.read_text().split()]
        running.kill()
    assert len(workers) >= 2
    end_s = time.monotonic() + 100
    while any(is_alive(each) for each in workers) and time.monotonic() < end_s:
        time.sleep(0.01)
    assert not [each for each in workers if is_alive(each)]


@pytest.mark.full
def test_a_long_swarm_reports_its_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("windtunnel.harness.simulator.swarm.swarm.PROGRESS_S", 0)
    order = SwarmSpec(0, 2, 0.0, 1, 20, "", as_json=False, keep=None)
    Swarm(order, tmp_path).run()
    progress = capsys.readouterr().err.splitlines()
    assert [line.split(" after ")[0] for line in progress] == ["1 of 2 trials", "2 of 2 trials"]


def stalling(window: int):
    """Return a choice whose unreliable stream loses every DATA frame until the recovery phase."""
    choice = choose(0, frames=400)
    traffic = choice.case.traffic[0].model_copy(
        update={
            "channel": "aeron:udp?endpoint=10.0.0.2:24325|term-length=131072|mtu=1408|"
            "init-term-id=0|term-id=0|term-offset=0",
            "receive": f"aeron:udp?endpoint=10.0.0.2:24325|rcv-wnd={window}|reliable=false",
            "from_host": "a",
            "to_host": "b",
            "port": 24_325,
            "reliable": False,
            "term_length": 131_072,
            "mtu": 1_408,
            "initial_term_id": 0,
            "initial_position": 0,
            "receiver_window_bytes": window,
            # Eight fill a term but for 8 KiB, which the PAD covers.
            "total_bytes": 40 * 15_000,
            "shortest_bytes": 15_000,
            "longest_bytes": 15_000,
        }
    )
    lost = FaultCase(
        id="f0", links=("a->b",), frame_types=("DATA",), action="drop", share_ppb=BILLION
    )
    case = choice.case.model_copy(update={"traffic": (traffic,), "faults": (lost,)})
    return replace(
        choice,
        case=case,
        delay_ns=900_000,
        turn_ns=1_000,
        idle_max_ns=100_000,
        bursts=(32,),
        readers=(Reader(),),
    )


def test_a_stall_of_the_protocol_is_no_violation(tmp_path):
    outcome = Trial(stalling(65_536), tmp_path).run()
    assert outcome.violation == ""
    assert len(outcome.stalls) == 1
    assert "snd-pos 131072" in outcome.stalls[0]


@pytest.mark.full
def test_a_stall_is_recognised_after_its_image_was_replaced(tmp_path):
    # Another image joins at snd-pos, and its state is no evidence of how the first one ended.
    slow = replace(stalling(65_536), readers=(Reader(visit_frames=1, rest_ns=20_000_000),))
    outcome = Trial(slow, tmp_path).run()
    assert outcome.violation == ""
    (stall,) = outcome.stalls
    assert "image died and was replaced" in stall
    assert "snd-pos 131072" in stall


def test_a_stream_with_a_smaller_window_recovers(tmp_path):
    outcome = Trial(stalling(32_768), tmp_path).run()
    assert (outcome.violation, outcome.stalls) == ("", ())


def test_seeds_choose_every_kind_of_trial():
    choices = [choose(seed) for seed in range(300)]
    traffic = [each for choice in choices for each in choice.case.traffic]
    faults = [each for choice in choices for each in choice.case.faults]
    assert {each.publication for each in traffic} == {"exclusive", "concurrent"}
    assert {each.reliable for each in traffic} == {True, False}
    assert {each.from_host for each in traffic} == {"a", "b"}
    assert {len(choice.case.traffic) for choice in choices} == {1, 2, 3}
    assert {each.action for each in faults} == set(ACTIONS)
    assert {name for each in faults for name in each.frame_types} >= {"DATA", "SM", "NAK", "SETUP"}
    assert {each.initial_term_id for each in traffic} >= {-(1 << 31), (1 << 31) - 1, -1, 0}
    assert {each.chance for each in faults} == {"independent", "two states", "four states"}
    assert {each.ending for each in faults} == {
        *("time", "frames", "advance", "consumed", "repeated")
    }
    assert {each.field for each in faults} >= {"payload", "version", "session-id", "term-id"}
    assert any(each.when and each.when.until for each in faults)
    assert any(each.rest_ns for choice in choices for each in choice.readers)
    assert any("cc=cubic" in each.receive for each in traffic)
    assert any(not choice.case.faults for choice in choices)


def test_a_seed_gives_the_same_run_in_any_process(tmp_path):
    own_trial = run_trial(17, tmp_path)
    _, lines, _ = swarm(tmp_path, "--seed", "15", "--seeds", "4")
    trial = next(each for each in lines if each.get("seed") == 17)
    assert own_trial.digest == trial["digest"]
    assert own_trial.choice == trial["choice"]


def test_states_that_do_not_fit_into_their_memory_are_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(world_state, "SAVED_WORDS", 16)
    assert "AssertionError" in run_trial(17, tmp_path).defect


def test_the_command_knows_every_sabotage():
    assert command.SABOTAGES == SABOTAGES


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("sabotage", SABOTAGES)
def test_each_sabotage_is_detected_by_some_seed(sabotage, tmp_path):
    # Not every trial detects every defect: for example, without faults nothing is repaired.
    for seed in range(12):
        result = run_trial(seed, tmp_path, sabotage=sabotage)
        assert not result.defect
        if result.violation:
            return
    raise AssertionError(f"no trial of 12 sees the sabotage {sabotage}")


@pytest.mark.full
def test_a_violation_is_reported_with_the_command_that_reproduces_it(tmp_path):
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "windtunnel.harness.simulator",
                "swarm",
                "--memory",
                str(tmp_path),
            ),
            *("--seed", "3", "--seeds", "1", "--sabotage", "lying-counter"),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "seed 3: rcv-hwm exceeds the highest position received" in done.stdout
    command_line = "reproduce: windtunnel swarm --seed 3 --seeds 1 --sabotage lying-counter"
    assert command_line in done.stdout.splitlines()


def test_a_kept_trial_has_the_same_digest_and_complete_records(tmp_path):
    plain = run_trial(17, tmp_path)
    kept = run_trial(17, tmp_path, keep=tmp_path / "kept")
    assert kept.digest == plain.digest
    folder = RunDir(tmp_path / "kept")
    simulation, case = Simulation.read(folder.simulation), Case.read(folder.case)
    assert simulation is not None
    assert simulation.digest == plain.digest
    assert case.seed == 17
    captures = [read_capture(folder.capture(host)) for host in "ab"]
    assert sum(each.packets for each in captures if each) == simulation.datagrams
