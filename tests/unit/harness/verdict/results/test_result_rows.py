"""The figures of a small hand-made run equal figures that were computed by hand."""

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_reading import (
    DELIVERED_MS,
    DUE_MS,
    FRAME_BYTES,
    MS,
    at_ms,
    captured,
    made_by_hand,
    written,
)
from tests.unit.harness.verdict.synthetic_run import A_TO_B, SESSION_ID, START_NS, TRAFFIC
from tests.unit.harness.verdict.synthetic_times import write_times
from windtunnel.harness.artifact.documents import read_document, write_document
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.host.host_facts import CaptureFacts
from windtunnel.harness.artifact.host.offer import OFFER
from windtunnel.harness.artifact.middlebox.decision import DUPLICATE
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.middlebox.ledger import FrameAccount, LinkAccount
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run.verdict import observations_of, read_verdict
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

FIGURES = {
    "traffic": TRAFFIC,
    "from_host": "a",
    "to_host": "b",
    "published_messages": 9,
    "delivered_messages": 9,
    "delivered_bytes": 900,
    "asked_bytes_per_s": 2000.0,
    "asked_messages_per_s": 20.0,
    "reached_bytes_per_s": pytest.approx(900 / 0.613),
    "reached_messages_per_s": pytest.approx(9 / 0.613),
    # Latencies: 23, 167, 157, 147, 137, 28, 18, 292 and 121 ms.
    "latency_p50_ns": 137 * MS,
    "latency_p99_ns": 292 * MS,
    "latency_max_ns": 292 * MS,
    "longest_silence_ns": (520 - 226) * MS,
    "finished_ns": (621 - 8) * MS,
    "lost_frames": 4,
    "lost_bytes": 4 * FRAME_BYTES,
    "resent_frames": 5,
    "resent_bytes": 5 * FRAME_BYTES,
    "gaps": 2,
    "naks": 3,
    "status_messages": 3,
    "requested_gaps": 2,
    "rejected_frames": 0,
    # Frame 4 had arrived when it was sent again.
    "unneeded_frames": 1,
    # From the arrival of frame 3 to that of frame 1, and from the heartbeat to frame 7.
    "repair_p50_ns": 45 * MS,
    "repair_p99_ns": 120 * MS,
    # Message 6 was the fastest, with 18 ms, so a message stalls 18 ms after it was due.
    "stalled_ns": {
        # Frame 6 needed the shortest time, 12 ms. Frame 8 was sent at 600 ms.
        "window": (600 + 12 - 520) * MS,
        "repair": (180 - 36 + 395 - 246) * MS,
        "link": (225 - 216 + 620 - 612) * MS,
        "reader": (185 - 180 + 226 - 225 + 520 - 395 + 621 - 620) * MS,
    },
}


def row_of(folder):
    """Return the only row of the judged folder, which the judge must compute without exceptions."""
    verdict = judge(folder.path)
    raised = [each.text for each in verdict.checks if each.name == "results"]
    assert not raised
    (row,) = verdict.results
    return row.as_document()


@pytest.fixture
def made(tmp_path):
    return made_by_hand(tmp_path / "run")


@pytest.fixture
def folder(made):
    return written(made)


def test_each_figure_equals_the_one_computed_by_hand(folder):
    assert row_of(folder) == FIGURES


def test_the_time_in_which_a_host_was_paused_is_a_cause_of_its_own(made):
    event = EventCase(
        id="freeze", host="b", process="subscriber", trigger="after", at=390 * MS,
        action="pause", lasts_ns=50 * MS,
    )  # fmt: skip
    made.case = made.case.model_copy(update={"events": (event,)})
    folder = written(made)
    began_ns, ended_ns = START_NS + 400 * MS, START_NS + 450 * MS
    here = AppliedEvent("freeze", "b", "pause", ["subscriber"], began_ns, ended_ns)
    elsewhere = AppliedEvent("freeze", "c", "pause", ["driver"], began_ns, ended_ns + 50 * MS)
    write_applied_events(folder.host_events, [here, elsewhere])
    stalled_ns = FIGURES["stalled_ns"]
    expected = stalled_ns | {"reader": stalled_ns["reader"] - 50 * MS, "pause": 50 * MS}
    assert row_of(folder)["stalled_ns"] == expected


LINK_FIGURES = {"lost_frames", "lost_bytes", "resent_frames", "resent_bytes", "gaps", "naks"}
LINK_FIGURES |= {"requested_gaps", "rejected_frames", "unneeded_frames", "stalled_ns"}
LINK_FIGURES |= {"repair_p50_ns", "repair_p99_ns", "status_messages"}
WHOLE = {"join_position": 0, "end_position": 1440, "eos_seen": True, "session_id": SESSION_ID}
WHOLE |= {"joined_ns": START_NS, "left_ns": START_NS + 700 * MS}


def rejoining(made, parts, events=()):
    """Return the run of a stream that rejoins, whose subscriber read these images."""
    stream = made.traffic.model_copy(update={"rejoins": True})
    made.case = made.case.model_copy(update={"traffic": (stream,), "events": events})
    folder = written(made)
    document = folder.host("b").subscriber(TRAFFIC).document
    write_document(document, read_document(document) | {"parts": list(parts)})
    return folder


def test_a_stream_that_may_rejoin_and_was_never_interrupted_has_all_figures(made):
    assert row_of(rejoining(made, [WHOLE])) == FIGURES


@pytest.mark.parametrize(
    "parts", [[], [WHOLE | {"eos_seen": False}], [WHOLE | {"eos_seen": False}, WHOLE]]
)
def test_a_subscriber_whose_image_was_interrupted_has_no_figures_of_the_link(made, parts):
    expected = {name: value for name, value in FIGURES.items() if name not in LINK_FIGURES}
    assert row_of(rejoining(made, parts)) == expected


def test_a_stream_of_several_sessions_has_no_figures_of_the_link(made):
    event = EventCase(
        id="crash", host="a", process="publisher", trigger="after", at=900 * MS, action="kill",
        lasts_ns=50 * MS,
    )  # fmt: skip
    row = row_of(rejoining(made, [WHOLE], events=(event,)))
    assert not LINK_FIGURES & set(row)


def test_what_is_missing_after_an_image_was_closed_is_no_gap(folder):
    """The first gap begins at 60 ms, the second one with the heartbeat at 350 ms."""
    document = folder.host("b").subscriber(TRAFFIC).document
    facts = read_document(document)
    found = {}
    for closed_ms in (349, 351):
        closing = {"eos_seen": False, "ended_ns": START_NS + closed_ms * MS}
        write_document(document, facts | closing)
        found[closed_ms] = row_of(folder)
    assert (found[349]["gaps"], found[349]["repair_p50_ns"]) == (1, 120 * MS)
    assert (found[351]["gaps"], found[351]["repair_p50_ns"]) == (2, 45 * MS)
    assert found[349]["lost_frames"] == found[351]["lost_frames"] == 4


def test_figures_of_a_reader_without_an_end_of_stream_cover_the_time_until_the_last_offer(made):
    """Messages 7 and 8 were due at 228 and 500 ms, and sent until 600 ms; 7 is not delivered."""
    made.messages = made.messages[:7]
    folder = written(made)
    write_times(made, at_ms(DUE_MS), at_ms(DELIVERED_MS[:7]))
    row = row_of(folder)
    assert (row["finished_ns"], row["ended_ns"]) == ((226 - 8) * MS, (500 - 8) * MS)
    assert row["longest_silence_ns"] == (500 - 226) * MS
    assert row["reached_bytes_per_s"] == pytest.approx(700 / 0.492)
    # Message 7 arrives at 395 ms, and the application does not read it.
    assert row["stalled_ns"]["repair"] == FIGURES["stalled_ns"]["repair"]
    assert row["stalled_ns"]["reader"] == (185 - 180 + 226 - 225 + 500 - 395) * MS
    (row,) = judge(folder.path).results
    text = "not finished: last delivery after 218 ms of 492 ms"
    assert dict(row.cells())["finished after"] == text


def test_a_message_that_never_arrives_stalls_its_reader_until_the_last_offer(made):
    made.packets["b"] = [each for each in made.packets["b"] if each.payload != made.frame_bytes(7)]
    made.messages = made.messages[:7]
    folder = written(made)
    write_times(made, at_ms(DUE_MS), at_ms(DELIVERED_MS[:7]))
    assert row_of(folder)["stalled_ns"] == {
        "repair": (180 - 36 + 500 - 246) * MS,
        "link": (225 - 216) * MS,
        "reader": (185 - 180 + 226 - 225) * MS,
    }


@pytest.mark.parametrize("how", ["subscriber ended", "subscriber killed"])
def test_the_figures_of_a_reader_that_ended_early_end_with_it(made, how):
    killed = EventCase(
        id="crash", host="b", process="subscriber", trigger="after", at=390 * MS, action="kill",
        lasts_ns=0,
    )  # fmt: skip
    made.case = made.case.model_copy(update={"events": (killed,)})
    made.messages = made.messages[:7]
    folder = written(made)
    write_times(made, at_ms(DUE_MS), at_ms(DELIVERED_MS[:7]))
    end_ns = START_NS + 300 * MS
    document = folder.host("b").subscriber(TRAFFIC).document
    if how == "subscriber ended":
        write_applied_events(folder.host_events, [])
        changes = {"eos_seen": False, "ended_ns": end_ns}
        write_document(document, read_document(document) | changes)
    else:
        document.unlink()
        write_applied_events(
            folder.host_events, [AppliedEvent("crash", "b", "kill", ["subscriber"], end_ns, 0)]
        )
    assert row_of(folder)["ended_ns"] == (300 - 8) * MS


def test_a_message_received_twice_counts_once(made):
    made.messages.append(made.messages[3])
    folder = written(made)
    write_times(made, at_ms(DUE_MS), at_ms((*DELIVERED_MS, 621)))
    row = row_of(folder)
    assert (row["delivered_messages"], row["delivered_bytes"]) == (9, 900)


TIMED = {
    "reached_bytes_per_s", "reached_messages_per_s", "latency_p50_ns", "latency_p99_ns",
    "latency_max_ns", "longest_silence_ns", "finished_ns", "stalled_ns",
}  # fmt: skip
"""Figures that need the times of the messages."""
OF_LINK = {
    "lost_frames", "lost_bytes", "resent_frames", "resent_bytes", "gaps", "naks",
    "requested_gaps", "rejected_frames", "unneeded_frames", "repair_p50_ns", "repair_p99_ns",
    "stalled_ns", "status_messages",
}  # fmt: skip
"""Figures that need the captures of both hosts."""
HOSTILE_TIMES = {
    "missing": None,
    "empty": b"",
    "torn": bytes(9 * 8 - 1),
    "one too many": bytes(10 * 8),
    "negative": np.full(9, -1).tobytes(),
    "earliest": np.full(9, -(1 << 63)).tobytes(),
    "extremes": np.array([-(1 << 63), (1 << 63) - 1] * 4 + [0]).tobytes(),
}


@pytest.mark.parametrize("content", HOSTILE_TIMES.values(), ids=HOSTILE_TIMES)
@pytest.mark.parametrize("which", ["offers", "deliveries"])
def test_figures_of_impossible_times_are_absent(folder, which, content):
    near, far = folder.host("a").publisher(TRAFFIC), folder.host("b").subscriber(TRAFFIC)
    file = near.times if which == "offers" else far.times
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert row_of(folder) == {name: value for name, value in FIGURES.items() if name not in TIMED}


@pytest.mark.parametrize("which", ["offers", "deliveries"])
def test_figures_of_deliveries_before_their_offers_are_absent(folder, which):
    near, far = folder.host("a").publisher(TRAFFIC), folder.host("b").subscriber(TRAFFIC)
    latest, earliest = np.full(9, (1 << 63) - 1).tobytes(), bytes(9 * 8)
    if which == "offers":
        near.times.write_bytes(latest)
    else:
        far.times.write_bytes(earliest)
    assert row_of(folder) == {name: value for name, value in FIGURES.items() if name not in TIMED}


@pytest.mark.parametrize("index", [-1, 10, 1 << 31, -(1 << 63)])
def test_offers_of_messages_that_are_not_planned_have_no_times(folder, index):
    offers = folder.host("a").publisher(TRAFFIC).offers
    records = np.fromfile(offers, dtype=OFFER)
    records["message_index"][4] = index
    write_records(offers, records)
    assert not TIMED & set(row_of(folder))


def test_figures_of_the_link_need_both_captures(folder):
    folder.capture("b").unlink()
    assert set(FIGURES) - set(row_of(folder)) == OF_LINK


@pytest.mark.parametrize("host", ["a", "b"])
@pytest.mark.parametrize("cut_bytes", [1, 700])
def test_figures_of_the_link_need_whole_captures(folder, host, cut_bytes):
    capture = folder.capture(host)
    capture.write_bytes(capture.read_bytes()[:-cut_bytes])
    assert set(FIGURES) - set(row_of(folder)) == OF_LINK
    sentences = observations_of(read_verdict(folder.verdict)).all_sentences
    expected = f"the capture at {host} is incomplete: 1 incomplete packet at the end of the file"
    assert expected in " ".join(sentences)


@pytest.mark.parametrize("host", ["a", "b"])
def test_figures_of_the_link_need_captures_without_lost_packets(folder, host):
    facts = CaptureFacts.read(folder.capture_statistics(host))
    CaptureFacts(facts.received, 1).write(folder.capture_statistics(host))
    assert set(FIGURES) - set(row_of(folder)) == OF_LINK


def test_lost_frames_are_not_counted_without_the_decisions_about_copies(folder):
    folder.decisions.unlink()
    row = row_of(folder)
    assert set(FIGURES) - set(row) == {"lost_frames", "lost_bytes", "unneeded_frames"}


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (LinkAccount(frames={"DATA": FrameAccount(duplicated=1)}), 4),
        (LinkAccount(frames={"DATA": FrameAccount(dropped=1)}), None),
        (LinkAccount(impairments=ImpairmentAccount(lost=1)), None),
    ],
)
def test_lost_frames_are_counted_despite_copies_if_the_middlebox_lost_nothing(
    made, account, expected
):
    made.links[A_TO_B] = account
    made.decide(3, DUPLICATE)
    folder = written(made)
    assert row_of(folder).get("lost_frames") == expected
    sentences = observations_of(read_verdict(folder.verdict)).all_sentences
    assert ("not counted, because the link may have" in " ".join(sentences)) == (expected is None)


def test_deliveries_that_are_not_in_the_plan_have_no_figures(made):
    made.messages[4] = (made.messages[4][0] - 32, bytes(100))
    absent = TIMED | {"delivered_messages", "delivered_bytes"}
    assert row_of(written(made)) == {
        name: value for name, value in FIGURES.items() if name not in absent
    }


def test_frames_that_are_not_in_the_plan_have_no_figures_of_the_link(made):
    header = bytearray(made.frame_bytes(8))
    header[8:12] = (8 * FRAME_BYTES + 32).to_bytes(4, "little")
    captured(made, "a", bytes(header), "DATA", 610, 630)
    assert set(FIGURES) - set(row_of(written(made))) == OF_LINK


def test_an_exception_while_figures_are_computed_is_the_harness_fault(folder, monkeypatch):
    def raises(*arguments):
        raise IndexError("index 0 is out of bounds")

    monkeypatch.setattr("windtunnel.harness.verdict.judge.readings", raises)
    verdict = judge(folder.path)
    assert verdict.results == ()
    (finding,) = [each for each in verdict.checks if each.name == "results"]
    assert finding.outcome is Outcome.HARNESS
    assert finding.text.startswith("the judge raised IndexError at test_result_rows.py")


def test_an_exception_while_undelivered_messages_are_counted_is_the_harness_fault(
    folder, monkeypatch
):
    def raises(*arguments):
        raise ValueError("expected at least 1 byte of content, found 0")

    monkeypatch.setattr("windtunnel.harness.verdict.judge.undelivered_notes", raises)
    (finding,) = [each for each in judge(folder.path).checks if each.name == "undelivered"]
    assert finding.outcome is Outcome.HARNESS


def test_a_plan_without_messages_has_no_figures_of_deliveries(made, monkeypatch):
    folder = written(made)
    nothing = np.zeros(0, dtype=np.int64)
    monkeypatch.setattr(
        "windtunnel.harness.verdict.core.evidence.plan",
        lambda *arguments, **options: type(made.plan)(nothing, nothing),
    )
    row = row_of(folder)
    assert row.get("delivered_messages", 0) == 0
    assert not TIMED & set(row)
