"""Streams in parts: a message too many, too few or wrong is named, and so is an end missed."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from harness.artifact.application import Part, PublisherFacts, SubscriberFacts
from harness.artifact.delivery import DELIVERY
from harness.artifact.plan import message_bytes
from harness.artifact.records import write_records
from harness.verdict.evidence import Evidence
from harness.verdict.outcome import Outcome
from harness.verdict.parts import delivered_in_parts
from tests.unit.harness.verdict.made_run import SESSION_ID, TRAFFIC, MadeRun, make_run

OTHER = 77


@pytest.fixture
def run(tmp_path) -> MadeRun:
    return make_run(tmp_path)


class Story:
    """What a subscriber saw: its parts, and the messages that they brought."""

    def __init__(self, run):
        self.run, self.parts, self.rows, self.bytes = run, [], [], []
        self.ends = run.log.message_ends.tolist()
        self.begins = [0, *self.ends[:-1]]

    def part(self, first, last, *, session=SESSION_ID, eos=False, join=None):
        """An image that brought the messages from first to last, the latter left out."""
        join = self.begins[first] if join is None else join
        self.parts.append(Part(session, join, self.ends[last - 1], eos, 1, 2))
        for index in range(first, last):
            self.bring(index, session)
        return self

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
        files = self.run.folder.host("b").subscriber(TRAFFIC)
        write_records(files.index, np.array(self.rows, dtype=DELIVERY))
        files.messages.write_bytes(b"".join(self.bytes))
        facts = SubscriberFacts.read(files.document)
        replace(facts, parts=[asdict(each) for each in self.parts]).write(files.document)
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
    finding = story.part(0, 10).part(15, count, eos=True).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_an_image_that_joins_inside_a_message_brings_the_next(story, count):
    join = story.begins[15] + 32
    finding = story.part(0, 10).part(16, count, eos=True, join=join).judge()
    assert finding.outcome is Outcome.PASS, finding.text


def test_sessions_may_come_at_the_same_time(story, count):
    story.part(0, 10, session=OTHER, eos=True).part(0, count, eos=True)
    middle = story.rows.pop(9), story.bytes.pop(9)
    story.rows.insert(20, middle[0])
    story.bytes.insert(20, middle[1])
    finding = story.judge()
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["sessions"] == 2


def fail(finding, word, *, stands):
    assert finding.outcome is Outcome.FAIL
    assert word in finding.text
    assert finding.stands is stands


def test_a_message_that_was_left_out_is_named(story, count):
    story.part(0, 10).part(15, count, eos=True)
    del story.rows[12], story.bytes[12]
    fail(story.judge(), "expected message 17", stands=True)


def test_a_message_that_came_twice_is_named(story, count):
    story.part(0, 10).part(15, count, eos=True).bring(9, at=10)
    fail(story.judge(), "expected message 15", stands=True)


def test_one_message_too_few_at_the_end_is_named(story, count):
    story.part(0, count, eos=True)
    del story.rows[-1], story.bytes[-1]
    fail(story.judge(), f"were to bring {count}", stands=True)


def test_an_image_that_goes_back_is_named(story, count):
    fail(story.part(0, 10).part(9, count, eos=True).judge(), "had brought all up to", stands=True)


def test_a_wrong_byte_is_named(story, count):
    story.part(0, 10).part(15, count, eos=True)
    damaged = bytearray(story.bytes[12])
    damaged[-1] ^= 1
    story.bytes[12] = bytes(damaged)
    fail(story.judge(), f"message 17 of session {SESSION_ID} is wrong from byte", stands=True)


def test_a_message_of_nobody_is_named(story, count):
    fail(
        story.part(0, count, eos=True).bring(3, session=5).judge(), "no image was seen", stands=True
    )


def test_a_session_that_did_not_end_is_named(story, count):
    fail(story.part(0, 10).judge(), "unended", stands=False)
    story.part(0, 10, session=OTHER)
    fail(story.judge(), "unended", stands=False)


def test_an_end_elsewhere_than_the_publishers_is_named(story, count):
    fail(story.part(0, count - 1, eos=True).judge(), "for its publisher", stands=False)


def test_a_publisher_that_nobody_heard_is_named(story, count):
    finding = story.part(0, count, eos=True).judge(publisher_session=OTHER)
    fail(finding, f"no image of session {OTHER}", stands=False)


def test_no_part_at_all_cannot_be_judged(story):
    assert story.bring(0).judge().outcome is Outcome.INCONCLUSIVE
