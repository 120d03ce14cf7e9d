"""Lab, relay, capture, sampler and judge end to end, with the real Aeron as the subject."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.soundness import assert_sound
from windtunnel.harness.artifact.host.counter_sample import read_counters, read_samples
from windtunnel.harness.artifact.host.host_facts import CaptureFacts, SnmpFacts
from windtunnel.harness.artifact.host.log_index import read_log_index
from windtunnel.harness.artifact.host.pressure import Pressure
from windtunnel.harness.artifact.middlebox.decision import DROP, read_decisions
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.subjects.subject import DIRECTORY, PYTHON, Pair, Subject
from windtunnel.harness.orchestrate.suite.runner import SuiteResult, run_suite
from windtunnel.harness.orchestrate.teardown import clean
from windtunnel.harness.topology import addressing

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = [
    pytest.mark.netns,
    pytest.mark.peer,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]
REPOSITORY = Path(__file__).resolve().parents[2]
STAND_IN = "tests.stand_ins.real_aeron"
REAL_AERON = Subject(
    "aeron-c", (PYTHON, "-m", STAND_IN, "driver", "--dir", DIRECTORY), ("-m", STAND_IN)
)
SEED = 11
WAIT_S = 300.0
MIB = 1 << 20

SCENARIO = """
schema: windtunnel/1
name: small-loss
about: A short stream with loss.
seeds: {root: 11}
fidelity: [netns]
network:
  hosts: [a, b]
  link: {between: [a, b]}
traffic:
  - id: one
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=1408|init-term-id=-3|term-id=-3|\
term-offset=0"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 2MiB}
faults:
  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}
expect:
  - delivered_once
  - image_log_equals_publication
  - naks_only_for_gaps
  - retransmits_only_if_asked
  - naks_and_retransmits_agree
  - retransmits_identical
  - counters_agree_with_packets
  - sends_within_window
  - status_messages_backed
  - rcv_pos_reaches_end
  - eos_reaches_end
  - rcv_pos_monotonic
  - rcv_hwm_from_wire
  - invalid_packets_zero
budget: {wall: 60s}
"""


def make_run(folder: Path, size: str = "2MiB", **options) -> tuple[SuiteResult, RunDir]:
    file = folder / "small-loss.yaml"
    file.write_text(SCENARIO.replace("2MiB", size))
    result = run_suite([file], out=folder / "runs", tested=Pair(REAL_AERON, REAL_AERON), **options)
    return result, RunDir(result.runs[0].run_dir)


@pytest.fixture(scope="module")
def good_run(tmp_path_factory) -> tuple[SuiteResult, RunDir]:
    return make_run(tmp_path_factory.mktemp("good"))


def test_the_c_driver_passes_on_a_lossy_link(good_run):
    result, folder = good_run
    assert [run.seed for run in result.runs] == [SEED]
    assert result.exit_code == assert_sound(folder.path).exit_code


def test_the_counters_follow_the_stream_to_its_end(good_run):
    _, folder = good_run
    end = json.loads(folder.host("a").publisher("one").document.read_text())["end_position"]
    counters = {each.counter_id: each for each in read_counters(folder.host("b").counters)}
    samples = read_samples(folder.host("b").counter_samples)
    (receiver_position,) = [each for each in counters.values() if each.type_id == 5]
    assert receiver_position.final_value == end > 2 * MIB
    values = samples["value"][
        (samples["counter_id"] == receiver_position.counter_id)
        & (samples["registration_id"] == receiver_position.registration_id)
    ]
    pressure = Pressure.read(folder.host("b").pressure).column("longest_gap_ns")
    assert len(values) > 5 or pressure.max() > 50_000_000
    assert (np.diff(values) > 0).all()


def test_the_results_have_every_figure(good_run):
    _, folder = good_run
    (row,) = json.loads(folder.verdict.read_text())["results"]
    known = {each.name for each in fields(ResultRow)}
    # The scenario names the stream, which has no pace, so no rate was requested; and it was
    # received to its end.
    absent = {"found_stream", "asked_bytes_per_s", "asked_messages_per_s", "ended_ns"}
    assert known - set(row) == absent
    assert row["delivered_messages"] == row["published_messages"]
    assert row["delivered_bytes"] == 2 * MIB
    assert 0 < row["latency_p50_ns"] <= row["latency_max_ns"] < row["finished_ns"]


def test_captures_lost_nothing_and_sockets_were_sampled(good_run):
    _, folder = good_run
    for host in ("a", "b"):
        statistics = CaptureFacts.read(folder.capture_statistics(host))
        assert statistics.received > 1000
        assert statistics.dropped_by_kernel == 0
        assert SnmpFacts.read(folder.host(host).snmp).grown("InDatagrams") > 10


def test_the_manifest_has_the_phases_and_exits_of_the_run(good_run):
    _, folder = good_run
    manifest = Manifest.read(folder.manifest)
    assert manifest.complete
    assert manifest.errors == []
    assert {each.driver for each in manifest.subjects.values()} == {"aeron-c"}
    assert all(each.version.startswith("1.") for each in manifest.subjects.values())
    assert {each.exit_code for each in manifest.processes} == {0}
    assert {each.name for each in manifest.processes if not each.asked} == {
        "a/publisher-one",
        "b/subscriber-one",
    }


def test_logs_and_pressure_are_in_the_run_folder(good_run):
    _, folder = good_run
    for host, kind in (("a", "publications"), ("b", "images")):
        (held,) = read_log_index(folder.host(host).log_index)
        assert (held.folder, held.left_out) == (kind, "")
        copy = folder.host(host).log_buffer(kind, held.registration_id)
        assert copy.stat().st_size == held.length == 3 * 65536 + 4096
        rows = Pressure.read(folder.host(host).pressure)
        assert rows.column("run_ns")[-1] > 0


@pytest.mark.full
def test_the_same_seed_loses_the_same_frames(good_run, tmp_path):
    _, repeated = make_run(tmp_path)
    assert _first_losses(repeated) == _first_losses(good_run[1])


@pytest.mark.full
def test_another_seed_loses_other_frames(good_run, tmp_path):
    _, other = make_run(tmp_path, seed=SEED + 1)
    assert _first_losses(other) != _first_losses(good_run[1])


def _first_losses(folder: RunDir) -> set[int]:
    decisions = read_decisions(folder.decisions)
    lost = decisions[(decisions["action"] == DROP) & (decisions["attempt"] == 1)]
    assert len(lost) > 10
    return set(lost["position"].tolist())


def test_a_publisher_that_skips_a_message_fails_with_the_reason(tmp_path):
    result, _ = make_run(tmp_path, sabotage="skip-message")
    assert result.exit_code == 1
    assert result.runs[0].outcome == "FAIL"
    assert "message 5" in result.runs[0].reason


SUITE = """
import sys
from pathlib import Path
from tests.netns.test_real_aeron import make_run
result, _ = make_run(Path(sys.argv[1]), on_event=lambda event: print(event.phase, flush=True))
sys.exit(result.exit_code)
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.full), (signal.SIGTERM, 143)],
)
def test_a_signal_in_the_middle_keeps_the_folder_and_leaves_nothing_else(tmp_path, number, code):
    argv = [sys.executable, "-c", SUITE, str(tmp_path)]
    harness = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        for line in harness.stdout:
            if line == "traffic\n":
                break
        harness.send_signal(number)
        harness.communicate(timeout=WAIT_S)
    finally:
        harness.kill()
        harness.wait()
        harness.stdout.close()
    assert harness.returncode == code
    (suite,) = (SuiteDir(path) for path in (tmp_path / "runs").glob("2*"))
    (folder,) = suite.runs()
    manifest = Manifest.read(folder.manifest)
    assert addressing.token(manifest.run_id) not in _labs_on_the_machine()
    assert not manifest.complete
    assert signal.Signals(number).name in manifest.stopped


def test_a_driver_that_dies_ends_the_run_at_once_with_a_verdict(tmp_path):
    def kill(event):
        if event.kind == "progress" and event.delivered_bytes > 0:
            for pid in _drivers(tmp_path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    result, folder = make_run(tmp_path, size="256MiB", on_event=kill)
    assert result.runs[0].outcome == "FAIL", result
    assert "driver was terminated by signal 9" in result.runs[0].reason
    assert "driver was ended by signal 9" in Manifest.read(folder.manifest).stopped


def _drivers(folder: Path) -> list[int]:
    """Return the process ids of the drivers whose logs are in a folder."""
    found = []
    for log in folder.glob("runs/*/*/hosts/*/driver.log"):
        for link in Path("/proc").glob("[0-9]*/fd/1"):
            # Any process of the machine may end while it is examined.
            with contextlib.suppress(OSError):
                if os.path.samefile(link, log):
                    found.append(int(link.parts[2]))
    return found


def _labs_on_the_machine() -> set[str]:
    """Return the names of all labs that have resources on this machine."""
    names = [path.name for path in clean.NAMESPACE_FOLDER.glob("wt-*")]
    return {name.split("-")[1] for name in names} | {
        path.name.removeprefix("windtunnel-") for path in Path("/dev/shm").glob("windtunnel-*")
    }
