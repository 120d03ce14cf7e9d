"""Reading a stream twice: as an application that wants messages, and as a tap that wants frames.

    driver --> log of the image --> subscription 1 --> FragmentAssembler --> messages.bin, index.bin
                                --> subscription 2 --> Tap --------------> frames.bin

Both are registered before anybody publishes, so both join where the stream begins. The end is
where both have read everything and the driver says that no more will come. A stream that rejoins is
read in parts, see `workload.rejoining`; a late subscriber reads as `workload.archive.merging` does.
"""

import struct
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import BinaryIO

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.host.delivery import DELIVERY
from windtunnel.harness.artifact.run_dir import SubscriberFiles
from windtunnel.harness.scenario.schema.pace import FREE, PaceCase
from windtunnel.harness.workload import overrun_guard
from windtunnel.harness.workload.archive.merging import read_merged
from windtunnel.harness.workload.options import FLIP_BYTE, Options
from windtunnel.harness.workload.pacer import Pacer
from windtunnel.harness.workload.progress import Progress, say
from windtunnel.harness.workload.rejoining import Parts, Rejoining
from windtunnel.harness.workload.stop import GaveUp, Stop, SubjectError, blaming_time
from windtunnel.harness.workload.tap import Tap

IDLE_S = 0.0001
FRAGMENT_LIMIT = 256
PACED_FRAGMENT_LIMIT = 8
"""Of an application with a pace of its own: a rest begins within so many frames of its place."""
BUFFER_BYTES = 1 << 20

_RECORD = struct.Struct("<qii")
assert _RECORD.size == DELIVERY.itemsize


class Application:
    """Takes whole messages at its own pace and writes them to files, one after the other."""

    def __init__(
        self,
        messages: BinaryIO,
        index: BinaryIO,
        progress: Progress,
        pace: PaceCase = FREE,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        *,
        flip_byte: bool,
    ) -> None:
        self._messages = messages
        self._index = index
        self._progress = progress
        self._length_bytes_max = overrun_guard.length_max(progress.total_bytes)
        self._pacer = Pacer(pace)
        self._clock_ns = clock_ns
        self._flip_byte = flip_byte
        self._assembler = FragmentAssembler(self._on_message)
        self.message_count = 0
        self._reading = 0
        """The image that is being read, by its correlation id."""
        self._ends: dict[int, int] = {}
        """Where the last message of each image ended."""

    def leave(self, image: Image) -> int:
        """Forget what was begun of a message. Returns where the last whole one ended, or -1."""
        self._assembler.forget(image.session_id)
        return self._ends.pop(image.correlation_id, -1)

    def poll(self, image: Image) -> int:
        """Take what has become readable, unless it rests. Returns how many fragments.

        Raises SubjectError where there is more than there can be.
        """
        overrun_guard.check(image, self._length_bytes_max)
        self._reading = image.correlation_id
        if self._pacer.is_free:
            return image.poll(self._assembler, FRAGMENT_LIMIT)
        if self._pacer.wait_ns(self._clock_ns()):
            return 0
        return image.poll(self._assembler, PACED_FRAGMENT_LIMIT)

    def _on_message(self, payload: memoryview, header: Header) -> None:
        length = len(payload)
        if self._flip_byte and length and self.message_count == 0:
            damaged = bytearray(payload)
            damaged[length // 2] ^= 0xFF
            payload = memoryview(damaged)
        self._messages.write(payload)
        self._index.write(_RECORD.pack(header.position, length, header.session_id))
        self._ends[self._reading] = header.position
        self.message_count += 1
        self._progress.add(length)
        if not self._pacer.is_free:
            self._pacer.add(length, self._clock_ns())


def run(options: Options, stop: Stop) -> None:
    """Read the stream to its end, and leave the subscriber's files, whatever happens."""
    traffic, files = options.traffic, options.files.subscriber(options.traffic.id)
    files.document.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(traffic.total_bytes)
    facts = _facts(traffic.stream_id)
    with ExitStack() as closing:
        # Runs last: whoever finds the document finds the other files complete.
        closing.callback(lambda: facts.write(files.document))
        flips = options.sabotage == FLIP_BYTE
        application, tap = _open_files(closing, files, progress, traffic.consume, flips)
        try:
            if traffic.merges is not None:
                read_merged(options, application, facts, progress, stop)
            elif traffic.rejoins:
                sessions = options.case.sessions_of(traffic)
                parts = Parts(application, tap, facts, sessions)
                Rejoining(options, parts, progress, stop).read()
            else:
                _read_one_image(options, application, tap, progress, facts, stop)
        except BaseException as error:
            facts.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            facts.ended_ns = time.time_ns()
            facts.message_count = application.message_count
            facts.message_bytes = progress.count_bytes


def _read_one_image(
    options: Options,
    application: Application,
    tap: Tap,
    progress: Progress,
    facts: SubscriberFacts,
    stop: Stop,
) -> None:
    traffic = options.traffic
    with Aeron(options.aeron_dir) as aeron, blaming_time(aeron):
        subscriptions = [
            aeron.add_subscription(traffic.receive, traffic.stream_id) for _ in range(2)
        ]
        # Both share one endpoint, whose sources are added once.
        for host, source in traffic.sources:
            if host == traffic.to_host:
                subscriptions[0].add_destination(source)
        say("ready")
        images = [_wait_for_image(aeron, each, stop) for each in subscriptions]
        cut_off = traffic.to_host in traffic.partial
        _read(aeron, images, application, tap, progress, facts, stop, may_be_cut_off=cut_off)
        for each in subscriptions:
            each.close()


def _facts(stream_id: int) -> SubscriberFacts:
    return SubscriberFacts(
        session_id=0,
        stream_id=stream_id,
        join_position=0,
        end_position=0,
        eos_seen=False,
        message_count=0,
        message_bytes=0,
        started_ns=time.time_ns(),
        ended_ns=0,
        error=None,
    )


def _open_files(
    closing: ExitStack,
    files: SubscriberFiles,
    progress: Progress,
    pace: PaceCase,
    flip_byte: bool,
) -> tuple[Application, Tap]:
    messages, index, frames = (
        closing.enter_context(path.open("wb", buffering=BUFFER_BYTES))
        for path in (files.messages, files.index, files.frames)
    )
    application = Application(messages, index, progress, pace, flip_byte=flip_byte)
    return application, Tap(frames, progress.total_bytes)


def _wait_for_image(aeron: Aeron, subscription: Subscription, stop: Stop) -> Image:
    while not (images := subscription.images):
        stop.check()
        _require_open(aeron)
        time.sleep(IDLE_S)
    return images[0]


def _read(
    aeron: Aeron,
    images: list[Image],
    application: Application,
    tap: Tap,
    progress: Progress,
    facts: SubscriberFacts,
    stop: Stop,
    *,
    may_be_cut_off: bool,
) -> None:
    """Poll both images until both are at the end of the stream, or gone where they may go."""
    own, tapped = images
    facts.session_id, facts.join_position = own.session_id, own.join_position
    facts.started_ns = time.time_ns()
    try:
        while True:
            work_count = application.poll(own) + tap.poll(tapped)
            progress.tell()
            stop.check()
            if work_count:
                continue
            if own.is_end_of_stream and tapped.is_end_of_stream:
                break
            _require_open(aeron)
            if own.is_closed or tapped.is_closed:
                if may_be_cut_off:
                    break
                raise GaveUp(
                    f"the image went away at position {own.position} (tap: {tapped.position}), "
                    "before the end of the stream"
                )
            time.sleep(IDLE_S)
    finally:
        facts.end_position = own.position
        facts.eos_seen = own.is_end_of_stream and tapped.is_end_of_stream
        progress.tell(last=True)


def _require_open(aeron: Aeron) -> None:
    if aeron.is_closed:
        raise SubjectError(f"the client was closed: {aeron.failure}")
