"""Streams in parts: extra, missing and wrong messages are reported, and so is a missing end.

So is an image that joined at a wrong position, and one that was not needed.
"""

import struct
from dataclasses import asdict, replace

import numpy as np
import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.synthetic_log import synthetic_log
from tests.unit.harness.verdict.synthetic_run import SESSION_ID, TRAFFIC, SyntheticRun, make_run
from windtunnel.harness.artifact.host.application import Part, PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.delivery import DELIVERY
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.host.log_index import (
    PUBLICATIONS,
    LogFacts,
    read_log_index,
    write_log_index,
)
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run.plan import message_bytes
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.delivery.parts import delivered_in_parts
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

OTHER = 77
PLACE_AT, SESSION_AT, SETUP_TERM_ID_AT = 8, 12, 24
"""Offsets within a frame: of the term offset, the session id, and a SETUP's active term id."""


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path, drops=False)


class Story:
    """The facts of a subscriber: its parts, and their messages."""

    def __init__(self, run):
        self.run, self.parts, self.rows, self.bytes = run, [], [], []
        self.ends = run.log.message_ends.tolist()
        self.begins = [0, *self.ends[:-1]]
        self.happened = []
        self.dead_log_end = 0

    def part(self, first, last, *, session=SESSION_ID, eos=False, join=None):
        """Add an image that delivered the messages from first to last, the latter excluded."""
        join = self.begins[first] if join is None else join
        self.run.now_ns += synthetic_run.STEP_NS
        now_ns = self.run.now_ns
        self.parts.append(Part(session, join, self.ends[last - 1], eos, now_ns, now_ns + 1))
        for index in range(first, last):
            self.bring(index, session)
        return self

    def setup(self, position, session=SESSION_ID):
        """Add a SETUP with the sender's position."""
        frame = bytearray(synthetic_run.setup_frame())
        term_id, term_offset = synthetic_run.place(position)
        struct.pack_into("<ii", frame, PLACE_AT, term_offset, session)
        struct.pack_into("<i", frame, SETUP_TERM_ID_AT, term_id)
        self.run.send("a", bytes(frame), "SETUP")
        return self

    def add_host_event(self, action="kill", process="driver", host="b"):
        """Add a host event at the current time."""
        name, now_ns = f"event-{len(self.happened)}", self.run.now_ns + synthetic_run.STEP_NS // 2
        event = EventCase(
            id=name,
            host=host,
            process=process,
            trigger="delivered",
            at=1,
            action=action,
            lasts_ns=1,
        )
        events = (*self.run.case.events, event)
        self.run.case = self.run.case.model_copy(update={"events": events})
        self.happened.append(AppliedEvent(name, host, action, [process], now_ns, now_ns + 1))
        return self

    def killed_session(self, sent, written=None):
        """Add another session that was killed after some messages, with its log if `told`."""
        self.setup(0, OTHER)
        end = self.ends[sent - 1]
        for index in np.flatnonzero(self.run.log.frames["position"] < end).tolist():
            frame = bytearray(self.run.frame_bytes(index))
            struct.pack_into("<i", frame, SESSION_AT, OTHER)
            self.run.send("a", bytes(frame), "DATA")
        self.dead_log_end = 0 if written is None else self.ends[written - 1]
        return self

    def _write_killed_log(self):
        files = self.run.folder.host("a")
        log = synthetic_log(
            [],
            end=self.dead_log_end,
            term_length=synthetic_run.TERM_LENGTH,
            initial_term_id=synthetic_run.INITIAL_TERM_ID,
            session_id=OTHER,
            stream_id=synthetic_run.STREAM_ID,
        )
        files.log_buffer(PUBLICATIONS, 4).write_bytes(log.tobytes())
        held = [*read_log_index(files.log_index), LogFacts(PUBLICATIONS, 4, len(log), "")]
        write_log_index(files.log_index, held)

    def bring(self, index, session=SESSION_ID, at=None):
        plan = self.run.plan
        start, length = int(plan.starts[index]), int(plan.lengths[index])
        row = (self.ends[index], length, session), message_bytes(self.run.payload, start, length)
        where = len(self.rows) if at is None else at
        self.rows.insert(where, row[0])
        self.bytes.insert(where, row[1].tobytes())
        return self

    def judge(self, publisher_session=SESSION_ID):
        path = self.run.write()
        write_applied_events(self.run.folder.host_events, self.happened)
        if self.dead_log_end:
            self._write_killed_log()
        files = self.run.folder.host("b").subscriber(TRAFFIC)
        write_records(files.index, np.array(self.rows, dtype=DELIVERY))
        files.messages.write_bytes(b"".join(self.bytes))
        facts = SubscriberFacts.read(files.document)
        parts = [asdict(each) for each in self.parts]
        replace(facts, parts=parts, message_count=len(self.rows)).write(files.document)
        document = self.run.folder.host("a").publisher(TRAFFIC).document
        replace(PublisherFacts.read(document), session_id=publisher_session).write(document)
        return delivered_in_parts(Evidence(path), self.run.traffic)


@pytest.fixture
def story(run):
    return Story(run)


@pytest.fixture
def count(run):
    return run.plan.count


def test_one_part_from_beginning_to_end_is_a_pass(story, count):
    finding = story.part(0, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["parts"] == 1


def test_what_lies_between_two_images_may_be_gone(story, count):
    story.part(0, 10).add_host_event().setup(story.begins[15])
    finding = story.part(15, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_messages_between_two_images_are_counted(story, count):
    story.part(0, 10).add_host_event().setup(story.begins[15])
    finding = story.part(15, count, eos=True).judge()
    assert finding.facts["undelivered_messages"] == 5
    assert finding.facts["undelivered_bytes"] == sum(story.run.plan.lengths[10:15].tolist())
    assert finding.facts["planned_messages"] == count


def test_a_message_that_another_session_delivered_is_not_counted(story, count):
    story.killed_session(12).part(0, 12, session=OTHER, eos=True).part(0, count, eos=True)
    finding = story.judge()
    assert finding.facts["undelivered_messages"] == finding.facts["undelivered_bytes"] == 0


def test_an_image_that_joins_inside_a_message_brings_the_next(story, count):
    join = story.begins[15] + 32
    story.part(0, 10).add_host_event().setup(join)
    finding = story.part(16, count, eos=True, join=join).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_sessions_may_come_at_the_same_time(story, count):
    story.killed_session(10).part(0, 10, session=OTHER, eos=True).part(0, count, eos=True)
    middle = story.rows.pop(9), story.bytes.pop(9)
    story.rows.insert(20, middle[0])
    story.bytes.insert(20, middle[1])
    finding = story.judge()
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["sessions"] == 2


def fail(finding, word, *, conclusive):
    assert finding.outcome is Outcome.FAIL
    assert word in finding.text
    assert finding.conclusive is conclusive


def test_a_message_that_was_left_out_is_reported(story, count):
    story.part(0, 10).part(15, count, eos=True)
    del story.rows[12], story.bytes[12]
    fail(story.judge(), "expected message 17", conclusive=True)


def test_a_message_that_was_delivered_twice_is_reported(story, count):
    story.part(0, 10).part(15, count, eos=True).bring(9, at=10)
    fail(story.judge(), "expected message 15", conclusive=True)


def test_one_message_too_few_at_the_end_is_reported(story, count):
    story.part(0, count, eos=True)
    del story.rows[-1], story.bytes[-1]
    fail(story.judge(), f"expected {count} messages from its images", conclusive=True)


def test_an_image_that_goes_back_is_reported(story, count):
    fail(
        story.part(0, 10).part(9, count, eos=True).judge(),
        "had delivered everything up to",
        conclusive=True,
    )


def test_a_wrong_byte_is_reported(story, count):
    story.part(0, 10).part(15, count, eos=True)
    damaged = bytearray(story.bytes[12])
    damaged[-1] ^= 1
    story.bytes[12] = bytes(damaged)
    fail(story.judge(), f"message 17 of session {SESSION_ID} differs from byte", conclusive=True)


def test_a_message_without_an_image_is_reported(story, count):
    fail(
        story.part(0, count, eos=True).bring(3, session=5).judge(),
        "no image of that session is listed",
        conclusive=True,
    )


def test_a_session_that_did_not_end_is_reported(story, count):
    fail(story.part(0, 10).judge(), "without EOS", conclusive=False)
    story.part(0, 10, session=OTHER)
    fail(story.judge(), "without EOS", conclusive=False)


def test_an_end_elsewhere_than_the_publishers_is_reported(story, count):
    fail(story.part(0, count - 1, eos=True).judge(), "the publication at", conclusive=False)


@pytest.mark.parametrize("written", [None, 12], ids=["as it left", "as its log says"])
def test_a_killed_publishers_session_ends_where_it_had_written_to(story, count, written):
    story.killed_session(12, written).part(0, 12, session=OTHER, eos=True).part(0, count, eos=True)
    finding = story.judge()
    assert finding.outcome is Outcome.PASS, finding.text


@pytest.mark.parametrize(
    ("sent", "written"), [(12, None), (12, 12), (10, 12)], ids=["sent", "both", "written"]
)
def test_a_killed_publishers_session_that_is_cut_short_is_reported(story, count, sent, written):
    story.killed_session(sent, written)
    story.part(0, 10, session=OTHER, eos=True).part(0, count, eos=True)
    text = f"session {OTHER}: the subscriber's image ended at {story.ends[9]}, "
    text += f"but the publication at {story.ends[11]}"
    fail(story.judge(), text, conclusive=False)


def test_a_session_without_disturbance_is_read_from_its_beginning(story, count):
    story.part(15, count, eos=True)
    fail(
        story.judge(),
        f"at position {story.begins[15]}, expected the sender's position: 0",
        conclusive=False,
    )


def test_a_publishers_death_is_no_excuse_for_an_image_that_comes_late(story, count):
    story.killed_session(10).add_host_event(process="publisher", host="a").setup(story.begins[15])
    story.part(0, 10, session=OTHER, eos=True).part(15, count, eos=True)
    fail(
        story.judge(),
        f"at position {story.begins[15]}, expected the sender's position: 0",
        conclusive=False,
    )


def test_an_image_that_comes_after_a_death_joins_where_its_sender_stood(story, count):
    story.part(0, 10).add_host_event().setup(story.begins[15])
    story.part(16, count, eos=True)
    wanted = (
        f"at position {story.begins[16]}, expected the sender's position: 0, {story.begins[15]}"
    )
    fail(story.judge(), wanted, conclusive=False)


def test_a_setup_that_came_later_made_no_image(story, count):
    story.part(0, 10).add_host_event().part(15, count, eos=True).setup(story.begins[15])
    fail(
        story.judge(),
        f"at position {story.begins[15]}, expected the sender's position: 0",
        conclusive=False,
    )


def test_an_image_that_was_lost_without_need_is_reported(story, count):
    story.part(0, 10).setup(story.begins[15]).part(15, count, eos=True)
    fail(story.judge(), f"was lost at position {story.ends[9]}", conclusive=False)
    story.add_host_event()
    fail(story.judge(), f"was lost at position {story.ends[9]}", conclusive=False)


def test_a_reader_that_stalled_may_come_back_to_an_image_that_lives(story, count):
    finding = story.part(0, 10).add_host_event("pause").part(15, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_a_stream_in_strong_impairment_may_lose_its_images(story, count):
    story.run.case = story.run.case.model_copy(
        update={"faults": synthetic_run.make_case(story.run.payload, True, True).faults}
    )
    story.part(0, 10).setup(story.begins[15])
    finding = story.part(15, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_missing_capture_is_inconclusive(story, count):
    path = story.run.folder.capture("b")
    story.part(0, count, eos=True).judge()
    path.unlink()
    finding = delivered_in_parts(Evidence(story.run.path), story.run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE


def test_what_a_reader_could_not_write_down_is_not_judged(story, count):
    story.part(0, count, eos=True)
    del story.rows[-1], story.bytes[-1]
    story.run.manifest.processes[-1].exit_code = 3
    assert story.judge().outcome is Outcome.HARNESS


def test_a_publisher_that_received_no_frame_is_reported(story, count):
    finding = story.part(0, count, eos=True).judge(publisher_session=OTHER)
    fail(finding, f"no image of session {OTHER}", conclusive=False)


def test_no_part_at_all_cannot_be_judged(story):
    assert story.bring(0).judge().outcome is Outcome.INCONCLUSIVE
