"""Sentences about what applications saw have the times and counts that were computed by hand."""

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_reading import (
    DELIVERED_MS,
    DUE_MS,
    MS,
    at_ms,
    made_by_hand,
    written,
)
from tests.unit.harness.verdict.synthetic_run import (
    A_TO_B,
    SESSION_ID,
    START_NS,
    TRAFFIC,
    make_run,
)
from tests.unit.harness.verdict.synthetic_times import write_times
from windtunnel.harness.artifact.documents import read_document, write_document
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.middlebox.decision import DROP
from windtunnel.harness.artifact.run.observed import FilledRange, Interruption, Observations, Stall
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.artifact.run.verdict import observations_of, read_verdict
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, ReachedCase, WhenCase
from windtunnel.harness.scenario.schema.host_event import EventCase, TimeoutsCase
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge
from windtunnel.harness.verdict.results.result_rows import Reading
from windtunnel.harness.verdict.results.sentences.reading_sentences import (
    fill_sentence,
    group_sentences,
    interruption_sentences,
    silence_text,
)

BILLION = 1_000_000_000
STALLS = (
    (36, 185, {"repair": 144, "reader": 5}),
    (216, 226, {"link": 9, "reader": 1}),
    (246, 520, {"repair": 149, "reader": 125}),
    (520, 621, {"window": 92, "link": 8, "reader": 1}),
)
"""Begin, end and causes of each stall in ms. Message 6 was the fastest, with 18 ms, of
which its frame was on the way for 12 ms."""
STALLED = (
    "one: 4 stalls from 0.028 s to 0.613 s, 534 ms in total: repair 293 ms, reader 132 ms, "
    "window 92 ms, link 17 ms; the longest lasted 274 ms, from 0.238 s (22:13:20.246 UTC)"
)

REVEALED = (  # Frame 7 was sent at 230 ms, and the heartbeat arrived at 350 ms.
    "one: no frame followed the 160 B whose recovery took longest: a heartbeat revealed the gap "
    "120 ms after they were sent, and only then their repair began"
)
UNNEEDED = "one: 1 unneeded retransmit, since another transmission of the same frame arrived"
"""Frame 4 is sent again although it had arrived."""
BEHIND = (
    "one: the publisher fell 92 ms behind its pace; latency begins with the first offer of a "
    "message, and does not include this delay"
)
"""800 bytes before the last published message take 400 ms at 2,000 B/s, and it is due at 492 ms."""


@pytest.fixture
def made(tmp_path):
    return made_by_hand(tmp_path / "run")


def seen_in(folder):
    """Return the observations of the written verdict."""
    raised = [each.text for each in judge(folder.path).checks if each.name == "observed"]
    assert raised == []
    return observations_of(read_verdict(folder.verdict))


def cut(when, share_ppb=BILLION, kinds=("DATA", "PAD")):
    return FaultCase(
        id="outage", links=(A_TO_B,), frame_types=kinds, action="drop", share_ppb=share_ppb,
        when=when,
    )  # fmt: skip


def with_cut(made, when, drops_ms=((20, 1), (30, 2)), **options):
    """Let a rule drop the first transmissions of frames 1 and 2."""
    made.case = made.case.model_copy(update={"faults": (cut(when, **options),)})
    for time_ms, frame in drops_ms:
        made.now_ns = START_NS + time_ms * MS
        made.decide(frame, DROP)
    return written(made)


def test_stalls_have_the_times_and_causes_counted_by_hand(made):
    found = seen_in(written(made))
    assert found.start_ns == START_NS + 8 * MS
    assert not found.is_virtual
    (reader,) = found.readers
    assert reader.stalls == [
        Stall(
            START_NS + begin * MS,
            START_NS + end * MS,
            {cause: each * MS for cause, each in causes.items()},
        )
        for begin, end, causes in STALLS
    ]
    assert reader.sentences == [STALLED, REVEALED, UNNEEDED]


def test_a_simulated_run_has_no_time_of_day(made):
    made.case = made.case.model_copy(update={"fidelity": "sim"})
    (sentence, *_) = seen_in(written(made)).all_sentences
    assert sentence == STALLED.removesuffix(" (22:13:20.246 UTC)")


WHENS = {
    # The first DATA frame leaves at 10 ms.
    "time": WhenCase(after_ns=10 * MS, for_ns=15 * MS),
    "position": WhenCase(reached=ReachedCase(ordinal=0, position=160), for_ns=15 * MS),
}


@pytest.mark.parametrize("when", WHENS.values(), ids=WHENS)
def test_a_cut_has_the_times_of_its_rule_and_the_silence_around_it(made, when):
    found = seen_in(with_cut(made, when))
    began_ns, ended_ns = START_NS + 20 * MS, START_NS + 35 * MS
    assert found.interruptions == [Interruption("cut", "outage", A_TO_B, began_ns, ended_ns)]
    assert found.all_sentences == [
        # Deliveries at 31 and 185 ms; the first offer was at 8 ms.
        "one: cut 'outage' (a->b) from 0.012 s to 0.027 s: no delivery for 154 ms, until "
        "150 ms after its end",
        STALLED,
        REVEALED,
        UNNEEDED,
        BEHIND,
    ]


def test_a_repeated_cut_has_a_range_for_each_period_in_which_it_dropped_frames(made):
    when = WhenCase(after_ns=10 * MS, for_ns=5 * MS, every_ns=70 * MS)
    found = seen_in(with_cut(made, when, drops_ms=((20, 1), (90, 1), (230, 7))))
    began_ms = [(each.began_ns - START_NS) // MS for each in found.interruptions]
    assert began_ms == [20, 90, 230]
    assert {each.ended_ns - each.began_ns for each in found.interruptions} == {5 * MS}


@pytest.mark.parametrize(
    ("when", "options"),
    [
        (None, {}),
        (WhenCase(after_ns=10 * MS, for_ns=15 * MS), {"share_ppb": BILLION - 1}),
        (WhenCase(after_ns=10 * MS, for_ns=15 * MS), {"kinds": ("NAK",)}),
    ],
    ids=["always", "not every frame", "no DATA"],
)
def test_a_rule_that_does_not_interrupt_a_stream_is_no_cut(made, when, options):
    assert seen_in(with_cut(made, when, **options)).interruptions == []


def event(**changes):
    known = {"id": "freeze", "host": "b", "process": "driver", "trigger": "after", "at": 0}
    return EventCase(**(known | {"action": "pause", "lasts_ns": 60 * MS} | changes))


def with_event(made, case, began_ms, ended_ms, parts, **timeouts):
    """Apply an event, and let the subscriber have these images."""
    stream = made.traffic.model_copy(update={"rejoins": True})
    update = {"traffic": (stream,), "events": (case,), "timeouts": TimeoutsCase(**timeouts)}
    made.case = made.case.model_copy(update=update)
    folder = written(made)
    times = (START_NS + began_ms * MS, START_NS + ended_ms * MS)
    write_applied_events(
        folder.host_events, [AppliedEvent(case.id, case.host, case.action, ["driver"], *times)]
    )
    document = folder.host("b").subscriber(TRAFFIC).document
    names = ("join_position", "end_position", "eos_seen", "joined_ns", "left_ns")
    listed = [
        {"session_id": SESSION_ID}
        | dict(zip(names, (*part[:3], *(START_NS + each * MS for each in part[3:])), strict=True))
        for part in parts
    ]
    write_document(document, read_document(document) | {"parts": listed})
    return folder


PARTS = ((0, 320, False, 5, 250), (1120, 1600, True, 300, 700))
"""Messages 0 and 1 from the first image, 7 and later ones from the second one."""


def test_an_image_that_a_pause_closed_is_named_with_the_timeout_and_missing_messages(made):
    made.messages = [each for each in made.messages if not 320 < each[0] <= 1120][:4]
    folder = with_event(made, event(), 190, 250, PARTS, image_liveness_ns=50 * MS)
    (folder.host("b").subscriber(TRAFFIC).times).unlink()
    found = seen_in(folder)
    assert found.all_sentences == [
        "one: pause 'freeze' (driver on b) from 0.182 s to 0.242 s",
        "one: an image closed at position 320 at 0.242 s, 60 ms after pause 'freeze' began (image "
        "liveness timeout of 50ms); the next one joined at position 1,120: 5 messages between them "
        "are missing",
        "one: lost frames, NAKs, repairs and stalls are not known: the stream may have several "
        "images or publishers at this subscriber",
        BEHIND,
    ]


def test_a_timeout_that_has_not_passed_is_not_named(made):
    folder = with_event(made, event(), 200, 250, PARTS, image_liveness_ns=51 * MS)
    (_, sentence, *_) = seen_in(folder).all_sentences
    assert "50 ms after pause 'freeze' began; the next one joined" in sentence


def test_an_image_that_joined_late_is_named_with_the_data_sent_before(made):
    made.messages = made.messages[2:]
    document = written(made).host("b").subscriber(TRAFFIC).document
    write_document(document, read_document(document) | {"join_position": 320})
    found = seen_in(made.folder)
    assert found.all_sentences[0] == (
        "one: the first image joined at position 320: 2 messages before it are missing"
    )


# The last frame arrives at 620 ms; the first offer was at 8 ms.
@pytest.mark.parametrize(("limit_ms", "is_named"), [(80, True), (81, False)])
def test_an_image_without_a_successor_is_named_with_its_time_and_cause(made, limit_ms, is_named):
    timeouts = TimeoutsCase(image_liveness_ns=limit_ms * MS)
    made.case = made.case.model_copy(update={"timeouts": timeouts})
    document = written(made).host("b").subscriber(TRAFFIC).document
    closing = {"eos_seen": False, "end_position": 1440, "ended_ns": START_NS + 700 * MS}
    write_document(document, read_document(document) | closing)
    timeout = " (image liveness timeout of 80ms)" if is_named else ""
    assert (
        "one: an image closed at position 1,440 at 0.692 s, 80 ms after the last frame arrived"
        f"{timeout}; no image followed"
    ) in seen_in(made.folder).all_sentences


def test_a_restart_ends_a_kill(made):
    killed = event(id="crash", action="kill")
    found = seen_in(with_event(made, killed, 190, 250, PARTS))
    begin, end = (START_NS + each * MS for each in (190, 250))
    assert found.interruptions == [Interruption("kill", "crash", "driver on b", begin, end)]


# The driver's last keepalive may be 1 s older than the kill.
@pytest.mark.parametrize(("limit_ms", "is_named"), [(1060, True), (1061, False)])
def test_the_driver_timeout_closes_the_images_of_a_killed_driver(made, limit_ms, is_named):
    killed = event(id="crash", action="kill")
    found = seen_in(with_event(made, killed, 190, 250, PARTS, driver_ns=limit_ms * MS))
    (_, sentence, *_) = found.all_sentences
    assert ("(driver timeout of 1060ms)" in sentence) == is_named


def test_times_begin_with_the_first_frame_if_a_killed_publishers_offers_are_lost(made):
    folder = written(made)
    write_times(made, [START_NS + each * MS for each in range(500, 509)], [START_NS + 700 * MS] * 9)
    assert seen_in(folder).start_ns == START_NS + 10 * MS


def test_an_event_at_a_host_that_a_stream_does_not_use_is_no_part_of_its_sentences(made):
    folder = with_event(made, event(process="publisher"), 190, 250, PARTS[1:])
    found = seen_in(folder)
    assert len(found.interruptions) == 1
    assert not any("freeze" in each for each in found.all_sentences)


def test_filled_ranges_are_those_that_the_application_read_with_their_reason(tmp_path):
    made = make_run(tmp_path / "run", reliable=False)
    # One of the lost frames arrives after its gap has been filled.
    first = min(at for at, header, _ in made.frames if header[6] == 0 and at > 0)
    late = int(np.flatnonzero(made.log.frames["position"] == first)[0])
    made.send("a", made.frame_bytes(late), "DATA")
    made.write()
    pads = [
        (at, int.from_bytes(header[:4], "little"), read_ns)
        for (at, header, _), read_ns in zip(made.frames, made.seen_ns, strict=True)
        if header[6] == 0 and at in {each[12] for each in made.decisions}
    ]
    found = seen_in(made.folder)
    (reader,) = found.readers
    assert reader.filled == [
        FilledRange(at, length, read_ns, int(at != first), int(at == first))
        for at, length, read_ns in pads
    ]
    total, missing = sum(each[1] for each in pads), made.plan.count - len(made.messages)
    assert found.all_sentences == [
        f"one: {len(pads)} ranges ({total:,} B) were filled with padding, over {len(pads) - 1} "
        f"lost frames and 1 that arrived too late and was discarded; {missing} of "
        f"{made.plan.count} messages are missing"
    ]


@pytest.mark.parametrize(
    ("lost", "late", "text"),
    [
        ((1, 0), (0, 0), "over 1 lost frame; "),
        ((0, 0), (1, 1), "over 2 frames that arrived too late and were discarded; "),
        ((2, 0), (0, 1), "over 2 lost frames and 1 that arrived too late and was discarded; "),
        ((2, None), (0, None), "; "),
    ],
)
def test_a_filled_range_has_a_reason_only_if_it_is_known(lost, late, text):
    ranges = [FilledRange(each * 64, 32, 7, lost[each], late[each]) for each in (0, 1)]
    row = ResultRow("one", "a", "b", published_messages=3, delivered_messages=2)
    expected = f"2 ranges (64 B) were filled with padding, {text}1 of 3 messages is missing"
    assert fill_sentence(ranges, row) == expected.replace(", ; ", "; ")


@pytest.mark.parametrize(
    ("times_ms", "text"),
    [
        ((50, 90, 110, 260), "no delivery for 150 ms, until 60 ms after its end"),
        ((50, 190, 199, 201), "no delivery for 140 ms, until 10 ms before its end"),
        ((50, 90), "the last delivery was at 0.090 s"),
        ((250,), "no delivery for 250 ms, until 50 ms after its end"),
    ],
)
def test_the_longest_silence_of_an_interruption_is_found(times_ms, text):
    pause = Interruption("pause", "p", "driver on b", START_NS + 100 * MS, START_NS + 200 * MS)
    times_ns = START_NS + np.array(times_ms, dtype=np.int64) * MS
    expected = f"pause 'p' (driver on b) from 0.100 s to 0.200 s: {text}"
    assert silence_text(times_ns, pause, START_NS) == expected


def test_the_longest_silence_of_a_cut_that_is_often_repeated_is_named():
    cuts = [
        Interruption("cut", "c", A_TO_B, START_NS + each * MS, START_NS + (each + 10) * MS)
        for each in (100, 200, 300, 400)
    ]
    times_ns = START_NS + np.array([99, 111, 199, 215, 299, 312, 399, 413]) * MS
    silences = [(0, "12 ms", 1), (1, "16 ms", 5), (2, "13 ms", 2), (3, "14 ms", 3)]
    texts = [
        f"cut 'c' (a->b) from 0.{index + 1}00 s to 0.{index + 1}10 s: no delivery for {silence}, "
        f"until {after} ms after its end"
        for index, silence, after in silences
    ]
    assert list(interruption_sentences(times_ns, cuts[:3], START_NS)) == texts[:3]
    (text,) = interruption_sentences(times_ns, cuts, START_NS)
    assert text == f"{texts[1]} (the longest silence of 4 repetitions)"


def group(made, channel, *rows):
    traffic = made.traffic.model_copy(update={"channel": channel})
    readings = [
        Reading(traffic, ResultRow("one", "a", f"b{index}", **row))
        for index, row in enumerate(rows)
    ]
    return list(group_sentences(readings, traffic))


MEMBERS = (
    {"naks": 3, "gaps": 2, "resent_frames": 4, "stalled_ns": {}},
    {
        "naks": 5,
        "gaps": 3,
        "resent_frames": 4,
        "stalled_ns": {"link": MS, "repair": 30 * MS, "window": MS // 4},
    },
    {"naks": 0, "gaps": 0, "resent_frames": 4, "stalled_ns": {}},
)


UNICAST = "aeron:udp?control-mode=manual"
UNEQUAL = (
    {"naks": 0, "gaps": 0, "resent_frames": 0},
    {"naks": 1, "gaps": 1, "resent_frames": 1},
)


def test_a_retransmit_to_a_group_counts_once(made):
    endpoint = "aeron:udp?endpoint=224.20.30.39:24325"
    assert group(made, endpoint, *MEMBERS) == [
        "one: 8 NAKs from 3 subscribers (0 to 5 each) for 5 gaps; 4 frames sent again, each to "
        "the whole group",
        "one: stalled in total: b1 31.2 ms (repair 30 ms, link 1 ms); b0 and b2 never",
    ]
    (recovered, _) = group(made, "aeron:udp?control-mode=dynamic|control=10.0.0.1:1", *MEMBERS)
    assert recovered.endswith("; 4 frames sent again to each of them")
    (recovered,) = group(made, UNICAST, *({**each, "stalled_ns": None} for each in UNEQUAL))
    assert recovered == (
        "one: 1 NAK from 2 subscribers (0 to 1 each) for 1 gap; 0 to 1 frames sent again to each "
        "of them"
    )


def test_the_subscribers_that_stalled_longest_are_named(made):
    rows = [{"stalled_ns": {"repair": each * MS}} for each in (10, 40, 20, 50, 30)]
    (sentence,) = group(made, "aeron:udp?endpoint=224.20.30.39:24325", *rows)
    assert sentence == (
        "one: stalled in total: b3 50 ms (repair 50 ms), b1 40 ms (repair 40 ms), b4 30 ms "
        "(repair 30 ms), 2 more at most 20 ms"
    )


def test_an_exception_while_observations_are_made_is_the_harness_fault(made, monkeypatch):
    def raises(*arguments):
        raise IndexError("index 0 is out of bounds")

    monkeypatch.setattr("windtunnel.harness.verdict.judge.observations", raises)
    verdict = judge(written(made).path)
    assert verdict.observed == Observations()
    (finding,) = [each for each in verdict.checks if each.name == "observed"]
    assert finding.outcome is Outcome.HARNESS


def test_frames_that_the_receiver_rejected_are_named():
    row = ResultRow("one", "a", "b", published_messages=3, delivered_messages=2)
    sentence = fill_sentence([FilledRange(64, 96, 7, 1, 1, 1)], row)
    assert (
        "over 1 lost frame and 1 that arrived too late and was discarded and 1 that arrived beyond "
        "the receiver window and was discarded; "
    ) in sentence


@pytest.mark.parametrize(
    ("pressured_ms", "unconnected_ms", "text"),
    [
        (9, 0, None),
        (30, 0, "one: the publication refused offers for 30 ms: back pressure 30 ms"),
        (
            30,
            1_100,
            "one: the publication refused offers for 1.13 s: not connected 1.10 s, back pressure "
            "30 ms",
        ),
    ],
)
def test_refused_offers_are_named_if_they_took_long(made, pressured_ms, unconnected_ms, text):
    document = written(made).host("a").publisher(TRAFFIC).document
    times = {"back_pressured_ns": pressured_ms * MS, "not_connected_ns": unconnected_ms * MS}
    write_document(document, read_document(document) | times)
    found = [each for each in seen_in(made.folder).all_sentences if "refused offers" in each]
    assert found == ([text] if text else [])


@pytest.mark.parametrize(("last_due_ms", "is_behind"), [(417, False), (500, True)])
def test_a_publisher_behind_its_pace_is_named_since_latency_does_not_show_it(
    made, last_due_ms, is_behind
):
    folder = written(made)
    due_ms = (*DUE_MS[:8], last_due_ms)
    write_times(made, at_ms(due_ms), at_ms(DELIVERED_MS))
    found = [each for each in seen_in(folder).all_sentences if "behind its pace" in each]
    assert found == ([BEHIND] if is_behind else [])
