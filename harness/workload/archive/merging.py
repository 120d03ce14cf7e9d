"""Reads a stream from a recording, then merges into the live stream, as one image.

    archive --replay--> loopback --.
                                    >-- one image --> Application --> messages.bin, index.bin
    publisher ---- link -----------'

The process prints `ready` before there is anything to read, and starts when enough is recorded. It
reads from the start of the recording to the end of the live stream. There is no tap, because a
merge has only one subscription.
"""

from windtunnel.driver.archive.client import ArchiveError, ReplayMerge
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.client.image.image import Image
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.workload.archive.archive_session import (
    LOOK_NS,
    SteppedArchive,
    connect,
    context,
    first_recording,
)
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.rejoining import Reader
from windtunnel.harness.workload.routine import Routine, Surroundings, connected
from windtunnel.harness.workload.stop import GaveUp

IDLE_NS = 100_000
REPLAY_DESTINATION = "aeron:udp?endpoint=localhost:0"
"""Destination of the replay, on the same host as the archive."""
PROGRESS_TIMEOUT_NS = 20_000_000_000
"""Merge timeout, longer than the client's default of 5 s because hosts share a machine."""


class Merging:
    """Reads one stream with a ReplayMerge."""

    def __init__(self, application: Reader, facts: SubscriberFacts) -> None:
        self._application = application
        self._facts = facts

    def read(self, merge: ReplayMerge) -> Routine[None]:
        """Read until the live stream ends. Raises GaveUp if the image is closed early, and
        ArchiveError if the merge fails.
        """
        facts = self._facts
        while True:
            work_count = self._do_work(merge)
            image = merge.image
            if merge.is_merged and facts.merged_position < 0 and image is not None:
                facts.merged_position = image.position
            if image is not None:
                fragments = self._application.poll(image)
                facts.end_position = image.position
                facts.eos_seen = image.is_end_of_stream
                # An incomplete merge always reports work, even if everything has been read.
                if facts.eos_seen and not fragments:
                    return
                work_count += fragments
                self._require_open(image)
            yield 0 if work_count else IDLE_NS

    @staticmethod
    def _do_work(merge: ReplayMerge) -> int:
        try:
            return merge.do_work()
        except ArchiveError as error:
            # An incomplete merge detects the closed image itself and raises an ArchiveError.
            if merge.image is not None and merge.image.is_closed:
                raise GaveUp(str(error)) from error
            raise

    @staticmethod
    def _require_open(image: Image) -> None:
        if image.is_closed:
            raise GaveUp(
                f"the image was closed at position {image.position}, before the end of the stream"
            )


def read_merged(
    options: Options, application: Reader, facts: SubscriberFacts, surroundings: Surroundings
) -> Routine[None]:
    """Wait for a recording, then merge it with the live stream and read to the end."""
    traffic, merges = options.traffic, options.traffic.merges
    assert merges is not None
    surroundings.on_ready()
    with (
        (yield from connected(surroundings)) as aeron,
        (yield from connect(aeron, context(options), surroundings.clock)) as archive,
    ):
        recording = yield from _long_recording(archive, traffic.stream_id, merges)
        session_id = recording.session_id
        channel = f"aeron:udp?control-mode=manual|session-id={session_id}"
        registration_id = aeron.async_add_subscription(channel, traffic.stream_id)
        while (subscription := aeron.get_subscription(registration_id)) is None:
            yield None
        with subscription:
            facts.session_id, facts.join_position = session_id, recording.start_position
            facts.started_ns = surroundings.epoch_ns()
            merge = ReplayMerge(
                subscription,
                archive,
                replay_channel=f"aeron:udp?session-id={session_id}",
                replay_destination=REPLAY_DESTINATION,
                live_destination=merges.live,
                recording_id=recording.recording_id,
                start_position=recording.start_position,
                progress_timeout_ns=PROGRESS_TIMEOUT_NS,
            )
            try:
                yield from Merging(application, facts).read(merge)
            finally:
                merge.close()


def _long_recording(
    archive: SteppedArchive, stream_id: int, merges: MergeCase
) -> Routine[RecordingDescriptor]:
    """Wait until a stream's first recording is long enough, and return it."""
    found = yield from first_recording(archive, stream_id)
    while True:
        position = yield from archive.max_recorded_position(found.recording_id)
        if position - found.start_position >= merges.after_bytes:
            return found
        yield LOOK_NS
