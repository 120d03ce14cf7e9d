"""Streams in parts: extra, missing and wrong messages are reported, and so is a missing end.

So is an image that joined at a wrong position, and one that was not needed.
"""

import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.judged import judged
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


class SyntheticParts:
    """The documents of a subscriber: its parts, and their messages."""

    def __init__(self, run):
        self.run, self.parts, self.rows, self.bytes = run, [], [], []
        self.ends = run.log.message_ends.tolist()
        self.begins = [0, *self.ends[:-1]]
        self.applied_events = []
        self.dead_log_end = 0

    def part(self, first, last, *, session=SESSION_ID, eos=False, join=None):
        """Add an image that delivered the messages from first to last, the latter excluded."""
        join = self.begins[first] if join is None else join
        self.run.now_ns += synthetic_run.STEP_NS
        now_ns = self.run.now_ns
        self.parts.append(Part(session, join, self.ends[last - 1], eos, now_ns, now_ns + 1))
        for index in range(first, last):
            self.deliver(index, session)
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
        name, now_ns = (
            f"event-{len(self.applied_events)}",
            self.run.now_ns + synthetic_run.STEP_NS // 2,
        )
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
        self.applied_events.append(AppliedEvent(name, host, action, [process], now_ns, now_ns + 1))
        return self

    def killed_session(self, sent, written=None):
        """Add another session that was killed after some messages, with its log if `written`."""
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

    def deliver(self, index, session=SESSION_ID, at=None):
        plan = self.run.plan
        start, length = int(plan.starts[index]), int(plan.lengths[index])
        row = (self.ends[index], length, session), message_bytes(self.run.payload, start, length)
        where = len(self.rows) if at is None else at
        self.rows.insert(where, row[0])
        self.bytes.insert(where, row[1].tobytes())
        return self

    def judge(self, publisher_session=SESSION_ID):
        path = self.run.write()
        write_applied_events(self.run.folder.host_events, self.applied_events)
        if self.dead_log_end:
            self._write_killed_log()
        files = self.run.folder.host("b").subscriber(TRAFFIC)
        write_records(files.index, np.array(self.rows, dtype=DELIVERY))
        files.messages.write_bytes(b"".join(self.bytes))
        facts = SubscriberFacts.read(files.document)
        replace(facts, parts=self.parts, message_count=len(self.rows)).write(files.document)
        document = self.run.folder.host("a").publisher(TRAFFIC).document
        replace(PublisherFacts.read(document), session_id=publisher_session).write(document)
        return judged(delivered_in_parts, Evidence(path), self.run.traffic)


@pytest.fixture
def parts(run):
    return SyntheticParts(run)


@pytest.fixture
def count(run):
    return run.plan.count


def test_one_part_from_beginning_to_end_is_a_pass(parts, count):
    finding = parts.part(0, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["parts"] == 1


def test_messages_between_two_images_may_be_missing(parts, count):
    parts.part(0, 10).add_host_event().setup(parts.begins[15])
    finding = parts.part(15, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_messages_between_two_images_are_counted(parts, count):
    parts.part(0, 10).add_host_event().setup(parts.begins[15])
    finding = parts.part(15, count, eos=True).judge()
    assert finding.facts["undelivered_messages"] == 5
    assert finding.facts["undelivered_bytes"] == sum(parts.run.plan.lengths[10:15].tolist())
    assert finding.facts["planned_messages"] == count


def test_a_message_that_another_session_delivered_is_not_counted(parts, count):
    parts.killed_session(12).part(0, 12, session=OTHER, eos=True).part(0, count, eos=True)
    finding = parts.judge()
    assert finding.facts["undelivered_messages"] == finding.facts["undelivered_bytes"] == 0


def test_an_image_that_joins_inside_a_message_starts_with_the_next(parts, count):
    join = parts.begins[15] + 32
    parts.part(0, 10).add_host_event().setup(join)
    finding = parts.part(16, count, eos=True, join=join).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_messages_of_two_sessions_may_be_interleaved(parts, count):
    parts.killed_session(10).part(0, 10, session=OTHER, eos=True).part(0, count, eos=True)
    middle = parts.rows.pop(9), parts.bytes.pop(9)
    parts.rows.insert(20, middle[0])
    parts.bytes.insert(20, middle[1])
    finding = parts.judge()
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["sessions"] == 2


def fail(finding, word, *, conclusive):
    assert finding.outcome is Outcome.FAIL
    assert word in finding.text
    assert finding.conclusive is conclusive


def test_a_message_that_was_left_out_is_reported(parts, count):
    parts.part(0, 10).part(15, count, eos=True)
    del parts.rows[12], parts.bytes[12]
    fail(parts.judge(), "expected message 17", conclusive=True)


def test_a_message_that_was_delivered_twice_is_reported(parts, count):
    parts.part(0, 10).part(15, count, eos=True).deliver(9, at=10)
    fail(parts.judge(), "expected message 15", conclusive=True)


def test_a_missing_last_message_is_reported(parts, count):
    parts.part(0, count, eos=True)
    del parts.rows[-1], parts.bytes[-1]
    fail(parts.judge(), f"expected {count} messages from its images", conclusive=True)


def test_an_image_that_joins_at_an_earlier_position_is_reported(parts, count):
    fail(
        parts.part(0, 10).part(9, count, eos=True).judge(),
        "had delivered everything up to",
        conclusive=True,
    )


def test_a_wrong_byte_is_reported(parts, count):
    parts.part(0, 10).part(15, count, eos=True)
    damaged = bytearray(parts.bytes[12])
    damaged[-1] ^= 1
    parts.bytes[12] = bytes(damaged)
    fail(parts.judge(), f"message 17 of session {SESSION_ID} differs from byte", conclusive=True)


def test_a_message_without_an_image_is_reported(parts, count):
    fail(
        parts.part(0, count, eos=True).deliver(3, session=5).judge(),
        "no image of that session is listed",
        conclusive=True,
    )


def test_a_session_that_did_not_end_is_reported(parts, count):
    fail(parts.part(0, 10).judge(), "without EOS", conclusive=False)
    parts.part(0, 10, session=OTHER)
    fail(parts.judge(), "without EOS", conclusive=False)


def test_an_end_elsewhere_than_the_publishers_is_reported(parts, count):
    fail(parts.part(0, count - 1, eos=True).judge(), "the publication at", conclusive=False)


@pytest.mark.parametrize("written", [None, 12], ids=["as it left", "as its log says"])
def test_a_killed_publishers_session_ends_with_its_log(parts, count, written):
    parts.killed_session(12, written).part(0, 12, session=OTHER, eos=True).part(0, count, eos=True)
    finding = parts.judge()
    assert finding.outcome is Outcome.PASS, finding.text


@pytest.mark.parametrize(
    ("sent", "written"), [(12, None), (12, 12), (10, 12)], ids=["sent", "both", "written"]
)
def test_a_killed_publishers_session_that_is_cut_short_is_reported(parts, count, sent, written):
    parts.killed_session(sent, written)
    parts.part(0, 10, session=OTHER, eos=True).part(0, count, eos=True)
    text = f"session {OTHER}: the subscriber's image ended at {parts.ends[9]}, "
    text += f"but the publication at {parts.ends[11]}"
    fail(parts.judge(), text, conclusive=False)


def test_an_undisturbed_session_is_read_from_its_start(parts, count):
    parts.part(15, count, eos=True)
    fail(
        parts.judge(),
        f"at position {parts.begins[15]}, expected the sender's position: 0",
        conclusive=False,
    )


def test_a_publishers_death_does_not_excuse_a_late_image(parts, count):
    parts.killed_session(10).add_host_event(process="publisher", host="a").setup(parts.begins[15])
    parts.part(0, 10, session=OTHER, eos=True).part(15, count, eos=True)
    fail(
        parts.judge(),
        f"at position {parts.begins[15]}, expected the sender's position: 0",
        conclusive=False,
    )


def test_an_image_after_a_death_joins_at_the_position_of_its_sender(parts, count):
    parts.part(0, 10).add_host_event().setup(parts.begins[15])
    parts.part(16, count, eos=True)
    wanted = (
        f"at position {parts.begins[16]}, expected the sender's position: 0, {parts.begins[15]}"
    )
    fail(parts.judge(), wanted, conclusive=False)


def test_a_later_setup_does_not_explain_an_image(parts, count):
    parts.part(0, 10).add_host_event().part(15, count, eos=True).setup(parts.begins[15])
    fail(
        parts.judge(),
        f"at position {parts.begins[15]}, expected the sender's position: 0",
        conclusive=False,
    )


def test_an_image_that_was_lost_without_a_reason_is_reported(parts, count):
    parts.part(0, 10).setup(parts.begins[15]).part(15, count, eos=True)
    fail(parts.judge(), f"was lost at position {parts.ends[9]}", conclusive=False)
    parts.add_host_event()
    fail(parts.judge(), f"was lost at position {parts.ends[9]}", conclusive=False)


def test_a_stalled_reader_may_get_a_new_image(parts, count):
    finding = parts.part(0, 10).add_host_event("pause").part(15, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_a_strongly_impaired_stream_may_lose_its_images(parts, count):
    parts.run.case = parts.run.case.model_copy(
        update={"faults": synthetic_run.make_case(parts.run.payload, True, True).faults}
    )
    parts.part(0, 10).setup(parts.begins[15])
    finding = parts.part(15, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_missing_capture_is_inconclusive(parts, count):
    path = parts.run.folder.capture("b")
    parts.part(0, count, eos=True).judge()
    path.unlink()
    finding = judged(delivered_in_parts, Evidence(parts.run.path), parts.run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE


def test_a_reader_that_could_not_write_its_files_is_not_judged(parts, count):
    parts.part(0, count, eos=True)
    del parts.rows[-1], parts.bytes[-1]
    parts.run.manifest.processes[-1].exit_code = 3
    assert parts.judge().outcome is Outcome.HARNESS


def test_a_publisher_that_received_no_frame_is_reported(parts, count):
    finding = parts.part(0, count, eos=True).judge(publisher_session=OTHER)
    fail(finding, f"no image of session {OTHER}", conclusive=False)


def test_a_run_without_parts_cannot_be_judged(parts):
    assert parts.deliver(0).judge().outcome is Outcome.INCONCLUSIVE
