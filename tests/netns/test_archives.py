"""Archives end to end: separate processes record and replay streams over a lossy link."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.soundness import assert_sound
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.subjects.peers import pair
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.verdict.checks.archive.recording import EQUAL
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]
FLAGS_AT = 5
SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "archive"


def run_of(folder, name, **options):
    """Run a scenario once, and return its run folder."""
    result = run_suite([SCENARIOS / f"{name}.yaml"], seeds=1, out=folder, **options)
    (run,) = SuiteDir(result.suite_dir).runs()
    return run


def findings(run):
    return {each.about: each for each in judge(run.path).checks if each.name == EQUAL}


def test_a_recording_equals_the_stream_and_a_changed_byte_is_detected(tmp_path):
    run = run_of(tmp_path, "record-under-loss")
    assert_sound(run.path)
    # Both streams have a file that begins here, with a frame.
    file = run.host("b").archive / "0-1048576.rec"
    content = bytearray(file.read_bytes())
    content[FLAGS_AT] ^= 1
    file.write_bytes(content)
    found = findings(run)
    assert sorted(each.outcome for each in found.values()) == [Outcome.FAIL, Outcome.PASS]


@pytest.mark.full
def test_a_killed_archive_keeps_reported_positions_and_its_successor_continues(tmp_path):
    run = run_of(tmp_path, "killed-while-recording")
    assert_sound(run.path)
    before, after = RecorderFacts.read(run.host("b").recorder("stream").document).recordings
    assert before.told_position <= before.stop_position < after.start_position < after.stop_position


@pytest.mark.full
def test_a_replay_over_a_lossy_link_equals_the_stream_and_its_subscriber_is_judged(tmp_path):
    run = run_of(tmp_path, "replay-to-lossy-subscriber")
    assert_sound(run.path)
    messages = run.host("a").subscriber("again").messages
    content = bytearray(messages.read_bytes())
    assert content == run.host("b").subscriber("orders").messages.read_bytes()
    content[-1] ^= 1
    messages.write_bytes(content)
    wrong = [each for each in judge(run.path).checks if each.outcome is Outcome.FAIL]
    assert [(each.name, each.about) for each in wrong] == [("delivered_once", "again")]


@pytest.mark.full
def test_a_late_reader_merges_into_a_lossy_live_stream(tmp_path):
    run = run_of(tmp_path, "merge-under-loss")
    sound = assert_sound(run.path)
    if sound.outcome is not Outcome.PASS:
        return  # On an overloaded host it may not have reached the live stream.
    document = run.host("b").subscriber("orders").document
    facts = SubscriberFacts.read(document)
    assert 2 << 20 <= facts.merged_position < facts.end_position
    replace(facts, merged_position=-1).write(document)
    pairs = zip(sound.checks, judge(run.path).checks, strict=True)
    assert [was.name for was, now in pairs if was.outcome is not now.outcome] == [
        "merged_into_live"
    ]


@pytest.mark.full
def test_a_replication_over_a_lossy_link_equals_the_recording(tmp_path):
    run = run_of(tmp_path, "replicate-over-bad-link")
    assert_sound(run.path)
    files = [
        {file.name: file.read_bytes() for file in run.host(name).archive.glob("*.rec")}
        for name in "ab"
    ]
    assert files[0] == files[1]
    assert sorted(findings(run)) == ["orders", "orders copied to a"]


@pytest.mark.full
def test_a_full_disk_ends_only_the_recording(tmp_path):
    run = run_of(tmp_path, "disk-full")
    assert_sound(run.path)
    text = findings(run)["long"].text
    assert ", until the disk was full; " in text
    assert f"{findings(run)['long'].facts['unrecorded_bytes']:,} bytes are in no recording" in text
    assert "full" not in findings(run)["short"].text
    assert not run.host("b").archive.is_mount()
    # A block that did not fit must have been removed completely.
    (recorded,) = RecorderFacts.read(run.host("b").recorder("long").document).recordings
    files = run.host("b").archive.glob(f"{recorded.recording_id}-*.rec")
    last = max(files, key=lambda file: int(file.stem.partition("-")[2]))
    content = bytearray(last.read_bytes())
    content[-1] = 1
    last.write_bytes(content)
    wrong = [each for each in judge(run.path).checks if each.outcome is Outcome.FAIL]
    assert [(each.name, each.about) for each in wrong] == [(EQUAL, "long")]


@pytest.mark.peer
@pytest.mark.full
def test_an_archive_runs_beside_the_c_driver(tmp_path):
    tested = pair("pyaeron", "pyaeron", "netns", tmp_path / "store")
    run = run_of(tmp_path, "replicate-over-bad-link", tested=tested)
    assert_sound(run.path)
    assert {each.outcome for each in findings(run).values()} == {Outcome.PASS}
