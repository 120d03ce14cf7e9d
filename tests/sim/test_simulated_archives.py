"""Archives on virtual time: recordings, replays, replicas and merges are judged as elsewhere."""

import pytest

from tests.sim.simulated import SCENARIOS, run, run_twice
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.subjects.peers import pair
from windtunnel.harness.verdict.checks.archive.recording import EQUAL
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)
FLAGS_AT = 5
RECORD, REPLAY = "record-under-loss", "replay-to-lossy-subscriber"
KILL, MERGE, REPLICATE = "killed-while-recording", "merge-under-loss", "replicate-over-bad-link"


def scenario(name):
    return SCENARIOS / "archive" / f"{name}.yaml"


def folder_of(folder):
    (found,) = folder.glob("runs/*/*/case.json")
    return RunDir(found.parent)


def passed(name, folder, **options):
    """Run a scenario, which must pass. Returns its run folder."""
    result = run(scenario(name), folder, **options)
    assert result.outcome == "PASS", result.reason
    return folder_of(folder)


def test_a_recording_equals_the_stream_and_a_changed_byte_is_detected(tmp_path):
    made = passed(RECORD, tmp_path)
    file = made.host("b").archive / "0-1048576.rec"
    content = bytearray(file.read_bytes())
    content[FLAGS_AT] ^= 1
    file.write_bytes(content)
    found = [each.outcome for each in judge(made.path).checks if each.name == EQUAL]
    assert sorted(found) == [Outcome.FAIL, Outcome.PASS]


def test_a_replay_delivers_all_that_was_published(tmp_path):
    made = passed(REPLAY, tmp_path)
    original, replay = judge(made.path).results
    assert original.published_messages == original.delivered_messages > 0
    assert replay.published_messages == replay.delivered_messages == original.published_messages


@pytest.mark.full
def test_a_killed_archive_keeps_reported_positions_and_its_successor_continues(tmp_path):
    made = passed(KILL, tmp_path)
    before, after = RecorderFacts.read(made.host("b").recorder("stream").document).recordings
    assert before.told_position <= before.stop_position < after.start_position < after.stop_position
    (event,) = read_applied_events(made.host_events)
    assert event.processes == ["archive"]
    # On virtual time events are exact.
    assert event.ended_ns - event.began_ns == pytest.approx(11 * 10**9, abs=100_000)
    exits = {each.name: each.exit_code for each in Manifest.read(made.manifest).processes}
    assert (exits["b/archive"], exits["b/archive#2"], exits["b/recorder-stream"]) == (-9, 0, 0)


@pytest.mark.full
def test_a_late_subscriber_merges_into_a_lossy_live_stream(tmp_path):
    made = passed(MERGE, tmp_path)
    facts = SubscriberFacts.read(made.host("b").subscriber("orders").document)
    assert facts.join_position < facts.merged_position < facts.end_position


@pytest.mark.full
def test_a_replica_equals_the_stream(tmp_path):
    made = passed(REPLICATE, tmp_path)
    assert sum(each.name == EQUAL for each in judge(made.path).checks) == 2


@pytest.mark.full
def test_a_pause_of_all_programs_includes_a_replicator(tmp_path):
    event = "{id: e, whom: {host: a, process: all}, when: {published: 1KiB}, act: {pause: 500ms}}"
    file = tmp_path / "paused.yaml"
    file.write_text(scenario(REPLICATE).read_text() + f"events: [{event}]\n")
    result = run(file, tmp_path)
    assert result.outcome == "PASS", result.reason
    (happened,) = read_applied_events(folder_of(tmp_path).host_events)
    assert happened.processes == ["archive", "driver", "publisher", "replicator"]


@pytest.mark.full
def test_a_seed_reproduces_recordings(tmp_path):
    first, second = run_twice(scenario(REPLICATE), tmp_path, (5, 5))
    assert first.digest == second.digest
    for host in "ab":
        files = [
            {each.name: each.read_bytes() for each in (where / "archive").glob("*.rec")}
            for where in (RunDir(tmp_path / name).host(host).path for name in ("first", "second"))
        ]
        assert len(files[0]) > 1
        assert files[0] == files[1]


@pytest.mark.peer
@pytest.mark.full
@pytest.mark.parametrize("name", [RECORD, REPLAY, KILL, MERGE, REPLICATE])
def test_archives_beside_the_c_driver_pass(name, tmp_path):
    pytest.importorskip("pyaeron")
    passed(name, tmp_path, tested=pair("pyaeron", "pyaeron", "sim", tmp_path / "store"))


@pytest.mark.full
def test_a_disk_of_limited_size_is_for_namespaces(tmp_path):
    text = scenario("disk-full").read_text().replace("[netns]", "[sim]")
    file = tmp_path / "disk-full.yaml"
    file.write_text(text)
    result = run(file, tmp_path)
    assert result.outcome == "UNSUPPORTED"
    assert "disk of limited size" in result.reason
