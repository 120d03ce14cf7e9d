"""Recordings: wrong, missing and extra bytes are reported, and so are wrong reports."""

import shutil
from dataclasses import asdict, replace

import pytest

from tests.unit.harness.verdict.synthetic_recording import SEGMENT, SyntheticRecordings
from tests.unit.harness.verdict.synthetic_run import SESSION_ID, TERM_LENGTH, TRAFFIC, make_run
from windtunnel.harness.artifact.host.application import Part, PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.host.recording import Recorded, RecorderFacts
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.scenario.schema.archive import DISK_RESERVE_BYTES
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.archive.recording import recording_equals_published
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

KILL = EventCase(
    id="crash", host="b", process="archive", trigger="delivered", at=1, action="kill", lasts_ns=1
)


@pytest.fixture
def made(tmp_path):
    return SyntheticRecordings(make_run(tmp_path))


def finding_of(path):
    """Return the only finding about the synthetic run."""
    evidence = Evidence(path)
    (finding,) = recording_equals_published(evidence, list(evidence.case.traffic))
    return finding


def judged(made, *overwritten):
    """Return the finding after some bytes of the archive were overwritten."""
    path = made.write()
    for each in overwritten:
        made.overwrite(*each)
    return finding_of(path)


def killed(made):
    made.run.case = made.run.case.model_copy(update={"events": (KILL,)})
    return made


def test_a_recording_of_the_whole_stream_is_a_pass(made):
    finding = judged(made)
    assert finding.outcome is Outcome.PASS, finding.text
    end = made.run.log.end_position
    assert finding.facts == {"recordings": 1, "bytes_of_stream": end, "unrecorded_bytes": 0}
    assert made.file(0, SEGMENT).exists()


def test_a_stream_that_is_not_recorded_is_not_checked(tmp_path):
    run = make_run(tmp_path)
    evidence = Evidence(run.write())
    assert recording_equals_published(evidence, list(evidence.case.traffic)) == []


@pytest.mark.parametrize("frame", [0, 7, -1])
@pytest.mark.parametrize("byte", [0, 4, 5, 6, 8, 12, 16, 20, 24, 31, 32])
def test_a_wrong_byte_of_a_frame_fails_conclusively(made, frame, byte):
    position = made.frame_starts[frame]
    finding = judged(made, (0, position + byte))
    assert finding.outcome is Outcome.FAIL
    assert finding.conclusive
    assert finding.position == position
    assert finding.evidence[0].startswith("hosts/b/archive/0-")


def test_the_header_of_padding_is_compared_and_bytes_after_it_are_not(made):
    pads = made.run.log.frames["frame_type"] == PAD
    position = int(made.run.log.frames["position"][pads.argmax()])
    assert judged(made, (0, position + 32)).outcome is Outcome.PASS
    assert judged(made, (0, position + 24)).position == position


def test_a_byte_after_the_stop_fails(made):
    end = made.run.log.end_position
    finding = judged(made, (0, end + 5))
    assert finding.outcome is Outcome.FAIL
    assert f"after the stop position {end}" in finding.text


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("session_id", 1, "session id 1"),
        ("initial_term_id", 5, "initial term id 5"),
        ("term_buffer_length", 2 * TERM_LENGTH, "term length"),
        ("mtu_length", 4096, "mtu 4096"),
        ("stream_id", 77, "0 recordings"),
        ("segment_file_length", 3, "is unreadable"),
        ("stop_position", -1, "has not stopped"),
    ],
)
def test_a_wrong_entry_of_the_catalog_fails(made, field, value, text):
    made.changes = {field: value}
    finding = judged(made)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def stops_early(made, **of_reader):
    """Return the finding on a recording without its last three frames, with a subscriber."""
    made.stretches = [(0, made.frame_starts[-3])]
    path = made.write()
    document = made.run.folder.host("b").subscriber(TRAFFIC).document
    facts = SubscriberFacts.read(document)
    assert facts is not None
    replace(facts, **of_reader).write(document)
    finding = finding_of(path)
    assert finding.outcome is Outcome.FAIL
    return finding


def test_a_recording_that_stops_though_its_image_continued_fails_conclusively(made):
    finding = stops_early(made)
    early, end = made.frame_starts[-3], made.run.log.end_position
    assert f"stops at {early}, expected {end}" in finding.text
    assert finding.conclusive


def test_a_recording_that_stops_early_fails_unless_the_host_was_too_slow(made):
    """Without a subscriber that read further, the host may have lost the image."""
    early, end = made.frame_starts[-3], made.run.log.end_position
    part = asdict(Part(SESSION_ID, 0, end, True, 0, 0))
    for facts in (
        {"end_position": early},
        {"join_position": end},
        {"session_id": SESSION_ID + 1},
        {"parts": [part]},
    ):
        assert not stops_early(made, **facts).conclusive, facts


def test_an_archive_that_was_ended_early_may_have_no_more(made):
    early = made.frame_starts[-3]
    made.error = "Stopped"
    assert not stops_early(made).conclusive
    made.reported = [Recorded(0, SESSION_ID, 0, -1, early)]
    assert not stops_early(made).conclusive


def test_an_archive_that_was_killed_may_have_no_more(made):
    assert not stops_early(killed(made)).conclusive


def test_a_recording_that_begins_late_fails(made):
    made.stretches = [(made.frame_starts[2], made.run.log.end_position)]
    finding = judged(made)
    assert "begins at" in finding.text
    assert finding.conclusive


def test_a_stop_within_a_frame_fails(made):
    made.stretches = [(0, made.frame_starts[-1] + 32)]
    assert "stops at" in judged(made).text
    assert "which is not a frame boundary" in judged(made).text


def test_a_file_that_is_missing_or_too_short_fails(made):
    path = made.write()
    file = made.file(0, SEGMENT)
    file.write_bytes(file.read_bytes()[:-1])
    assert f"has {SEGMENT - 1} bytes" in finding_of(path).text
    file.unlink()
    assert f"no segment file for position {SEGMENT}" in finding_of(path).text


def test_a_second_recording_needs_a_kill_of_the_archive(made):
    cut = made.frame_starts[40]
    made.stretches = [(0, cut), (cut, made.run.log.end_position)]
    assert "2 recordings of the stream: expected 1" in judged(made).text
    assert judged(killed(made)).outcome is Outcome.PASS


def test_data_that_was_sent_while_the_archive_was_dead_may_be_missing(made):
    starts = made.frame_starts
    made.stretches = [(0, starts[40]), (starts[60], made.run.log.end_position)]
    finding = judged(killed(made))
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["recordings"] == 2


@pytest.mark.parametrize(
    ("after_ms", "host", "outcome"),
    [(-1, "b", Outcome.PASS), (99, "b", Outcome.PASS), (100, "b", Outcome.FAIL),
     (-1, "a", Outcome.FAIL)],
)  # fmt: skip
def test_an_archive_that_is_killed_before_the_stream_begins_may_record_it_later(
    made, after_ms, host, outcome
):
    made.stretches = [(made.frame_starts[40], made.run.log.end_position)]
    path = killed(made).write()
    document = made.run.folder.host("a").publisher(made.run.traffic.id).document
    began_ns = PublisherFacts.read(document).started_ns + after_ms * 1_000_000
    event = AppliedEvent("crash", host, "kill", ["archive"], began_ns, began_ns + 1)
    write_applied_events(made.run.folder.host_events, [event])
    finding = finding_of(path)
    assert finding.outcome is outcome
    assert ("begins at" in finding.text) == (outcome is Outcome.FAIL)


def test_a_kill_of_another_hosts_archive_excuses_nothing(made):
    cut = made.frame_starts[40]
    made.stretches = [(0, cut), (cut, made.run.log.end_position)]
    event = KILL.model_copy(update={"host": "a"})
    made.run.case = made.run.case.model_copy(update={"events": (event,)})
    assert judged(made).outcome is Outcome.FAIL


def test_data_that_was_recorded_twice_fails(made):
    starts = made.frame_starts
    made.stretches = [(0, starts[40]), (starts[39], made.run.log.end_position)]
    assert "the previous recording already covers everything up to" in judged(killed(made)).text


def test_a_copy_is_judged_by_the_files_of_its_own_host(made):
    made.write()
    (traffic,) = made.run.case.traffic
    copied = traffic.model_copy(update={"replicated": "a"})
    made.run.case = made.run.case.model_copy(update={"traffic": (copied,)})
    path = made.write()
    evidence = Evidence(path)
    own, copy = recording_equals_published(evidence, list(evidence.case.traffic))
    assert (own.outcome, own.about) == (Outcome.PASS, TRAFFIC)
    assert (copy.outcome, copy.about) == (Outcome.INCONCLUSIVE, f"{TRAFFIC} copied to a")
    here, there = (made.run.folder.host(name) for name in "ba")
    shutil.copytree(here.archive, there.archive)
    shutil.copy(here.recorder(TRAFFIC).document, there.recorder(TRAFFIC).document)
    made.overwrite(0, made.frame_starts[5] + 40)
    evidence = Evidence(path)
    own, copy = recording_equals_published(evidence, list(evidence.case.traffic))
    assert (own.outcome, copy.outcome) == (Outcome.FAIL, Outcome.PASS)


def test_data_that_the_archive_reported_as_recorded_must_exist(made):
    starts, end = made.frame_starts, made.run.log.end_position
    made.stretches = [(0, starts[40]), (starts[60], end)]
    second = Recorded(1, SESSION_ID, starts[60], end, end)
    made.reported = [Recorded(0, SESSION_ID, 0, starts[40], starts[41]), second]
    finding = judged(killed(made))
    assert finding.outcome is Outcome.FAIL
    assert f"had reported position {starts[41]} as recorded" in finding.text
    assert finding.conclusive


@pytest.mark.parametrize("change", [{"start_position": 32}, {"stop_position": 64}])
def test_an_archive_whose_report_differs_from_its_catalog_fails(made, change):
    end = made.run.log.end_position
    made.reported = [replace(Recorded(0, SESSION_ID, 0, end, 0), **change)]
    assert "the archive reported" in judged(made).text


@pytest.mark.parametrize(("error", "conclusive"), [("Stopped", False), (None, True)])
def test_a_client_that_ended_early_may_not_have_received_the_stop(made, error, conclusive):
    made.error = error
    made.reported = [Recorded(0, SESSION_ID, 0, -1, 64)]
    finding = judged(made)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, conclusive)


@pytest.mark.parametrize("wrong", ["start", "byte"])
def test_another_error_is_conclusive(made, wrong):
    made.error = "Stopped"
    made.reported = [Recorded(0, SESSION_ID, 32 if wrong == "start" else 0, -1, 64)]
    finding = judged(made, *([(0, 40)] if wrong == "byte" else []))
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)


def test_a_recording_that_was_reported_and_is_missing_fails(made):
    end = made.run.log.end_position
    made.reported = [Recorded(0, SESSION_ID, 0, end, end), Recorded(4, SESSION_ID, 0, 32, 32)]
    assert "the archive reported recording 4" in judged(made).text


@pytest.mark.parametrize("lost", ["archive.catalog", "archive", "recorder"])
def test_missing_evidence_is_inconclusive(made, lost):
    path = made.write()
    files = made.run.folder.host("b")
    if lost == "recorder":
        files.recorder(TRAFFIC).document.unlink()
    else:
        (files.archive / "archive.catalog").unlink()
        if lost == "archive":
            files.archive.rename(files.path / "elsewhere")
    finding = finding_of(path)
    assert finding.outcome in (Outcome.INCONCLUSIVE, Outcome.HARNESS)


def test_a_document_that_cannot_be_understood_is_a_harness_defect(made):
    path = made.write()
    document = made.run.folder.host("b").recorder(TRAFFIC).document
    RecorderFacts(1, 2, 3, None, [{"what": 1}]).write(document)
    assert finding_of(path).outcome is Outcome.HARNESS


def on_disk(made, disk_bytes):
    (archive,) = made.run.case.archives
    small = archive.model_copy(update={"disk_bytes": disk_bytes})
    made.run.case = made.run.case.model_copy(update={"archives": (small,)})
    return made


def test_a_recording_may_stop_where_its_disk_is_full(made):
    stop = made.frame_starts[-3]
    made.stretches = [(0, stop)]
    finding = judged(on_disk(made, DISK_RESERVE_BYTES + stop - 1))
    assert finding.outcome is Outcome.PASS, finding.text
    rest = f"positions {stop:,} to {made.run.log.end_position:,}"
    assert ", until the disk was full; " in finding.text
    assert finding.text.endswith(f" bytes are in no recording: {rest}")


def test_a_recording_that_stops_with_space_left_on_its_disk_fails(made):
    stop = made.frame_starts[-3]
    made.stretches = [(0, stop)]
    finding = judged(on_disk(made, DISK_RESERVE_BYTES + stop))
    assert finding.outcome is Outcome.FAIL
    assert f"stops at {stop}, expected" in finding.text


def test_bytes_after_the_stop_on_a_full_disk_fail(made):
    stop = made.frame_starts[-3]
    made.stretches = [(0, stop)]
    finding = judged(on_disk(made, DISK_RESERVE_BYTES + 1), (0, stop + 7))
    assert finding.outcome is Outcome.FAIL
    assert "after the stop position" in finding.text
