"""A late subscriber starts when enough is recorded, records its merge, and ends with the stream."""

from types import SimpleNamespace

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.harness.workload.routines import answering, finish
from windtunnel.driver.archive.client import ArchiveError
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.workload.archive import merging
from windtunnel.harness.workload.archive.merging import Merging
from windtunnel.harness.workload.stop import GaveUp

MERGE = MergeCase(after_bytes=100, live="aeron:udp", port=1)


class ScriptedMerge:
    """A merge whose image advances one step per turn."""

    def __init__(self, *turns):
        """Take the image's position (None without an image) and its state for each turn."""
        self.turns = list(turns)
        self.image, self.is_merged = None, False

    def do_work(self):
        position, *words = self.turns.pop(0)
        self.is_merged = self.is_merged or "merged" in words
        self.image = (
            None
            if position is None
            else SimpleNamespace(
                position=position, is_end_of_stream="end" in words, is_closed="closed" in words
            )
        )
        return 1 if "busy" in words else 0


class Application:
    """An application that consumes everything, and counts its polls."""

    def __init__(self, *counts):
        self.counts, self.asked = list(counts), 0

    def poll(self, image):
        self.asked += 1
        return self.counts.pop(0) if self.counts else 0


@pytest.fixture
def facts():
    return SubscriberFacts(0, 1, 0, 0, False, 0, 0, 0, 0, None)


def read(merge, facts, application=None):
    finish(Merging(application or Application(), facts).read(merge))
    return facts


def test_it_reads_to_the_end_and_records_the_merge_position(facts):
    merge = ScriptedMerge((None,), (64,), (128, "merged"), (192,), (256, "end"))
    found = read(merge, facts)
    assert (found.merged_position, found.end_position, found.eos_seen) == (128, 256, True)
    assert merge.turns == []


def test_what_is_left_at_the_end_is_read(facts):
    merge = ScriptedMerge((64, "merged", "end"), (96, "end"), (96, "end"))
    application = Application(5, 1, 0)
    assert read(merge, facts, application).end_position == 96
    assert application.asked == 3


def test_a_subscriber_that_never_merges_reports_it(facts):
    assert read(ScriptedMerge((64,), (96, "end", "busy")), facts).merged_position == -1


def test_an_image_that_goes_away_is_a_failure(facts):
    with pytest.raises(GaveUp, match="was closed at position 96, before the end"):
        read(ScriptedMerge((64,), (96, "closed")), facts)


@pytest.mark.parametrize(("words", "kind"), [(("closed",), GaveUp), ((), ArchiveError)])
def test_an_image_that_the_merge_lacks_is_a_failure_and_other_errors_are_raised(facts, words, kind):
    merge = ScriptedMerge((64,), (96, *words))

    def do_work():
        count = ScriptedMerge.do_work(merge)
        if not merge.turns:
            raise ArchiveError("replay merge: no more")
        return count

    merge.do_work = do_work
    with pytest.raises(kind, match="replay merge: no more"):
        read(merge, facts)


def test_it_begins_when_the_required_amount_is_recorded():
    positions, listings = [64, 163, 164], [0, 0, 1]

    def list_recordings_for_uri(first, count, fragment, stream_id, handler):
        found = listings.pop(0)
        if found:
            handler(own.descriptor(4, start=64))
        return found

    archive = SimpleNamespace(
        list_recordings_for_uri=answering(list_recordings_for_uri),
        max_recorded_position=answering(lambda number: positions.pop(0)),
    )
    found = finish(merging._long_recording(archive, own.STREAM_ID, MERGE))
    assert (found.recording_id, positions, listings) == (4, [], [])
