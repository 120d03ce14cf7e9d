"""Reads a stream twice: an application reads messages, and a tap reads frames.

    driver --> log of the image --> subscription 1 --> FragmentAssembler --> messages, index, times
                                --> subscription 2 --> Tap --------------> frames.bin

Both are registered before publishing starts, so both join at the start of the stream. They end when
both have read everything and the driver reports the end of the stream. A stream that rejoins is
read in parts, see `workload.rejoining`. A late subscriber reads as in `workload.archive.merging`.
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
from windtunnel.harness.artifact.host.message_times import DELIVERY_TIME
from windtunnel.harness.artifact.run_dir import SubscriberFiles
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.pace import UNLIMITED, PaceCase
from windtunnel.harness.workload import overrun_guard, routine
from windtunnel.harness.workload.archive.merging import read_merged
from windtunnel.harness.workload.options import FLIP_BYTE, Options
from windtunnel.harness.workload.pacer import Pacer
from windtunnel.harness.workload.progress import JOINED, Progress, print_line
from windtunnel.harness.workload.rejoining import Parts, Rejoining
from windtunnel.harness.workload.routine import Surroundings
from windtunnel.harness.workload.stop import (
    GaveUp,
    Stop,
    SubjectError,
    error_text,
    timeouts_as_gave_up,
)
from windtunnel.harness.workload.tap import Tap

IDLE_S = 0.0001
FRAGMENT_LIMIT = 256
PACED_FRAGMENT_LIMIT = 8
"""Fragment limit of a paced application. A pause can start at most this many frames late."""
BUFFER_BYTES = 1 << 16
"""The buffer of each file. Messages wait while it is written, which takes 0.7 ms for 1 MiB."""

_RECORD = struct.Struct("<qii")
_TIME = struct.Struct("<q")
assert _RECORD.size == DELIVERY.itemsize
assert _TIME.size == DELIVERY_TIME.itemsize


class Application:
    """Reads whole messages at a given pace and appends them to files."""

    def __init__(
        self,
        messages: BinaryIO,
        index: BinaryIO,
        progress: Progress,
        pace: PaceCase = UNLIMITED,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        wall_clock_ns: Callable[[], int] = time.time_ns,
        *,
        times: BinaryIO,
        flip_byte: bool,
    ) -> None:
        self._messages = messages
        self._index = index
        self._times = times
        self._wall_clock_ns = wall_clock_ns
        self._progress = progress
        self._length_bytes_max = overrun_guard.length_max(progress.total_bytes)
        self._pacer = Pacer(pace)
        self._clock_ns = clock_ns
        self._flip_byte = flip_byte
        self._assembler = FragmentAssembler(self._on_message)
        self.message_count = 0
        self._reading = 0
        """Correlation id of the image that is being read."""
        self._ends: dict[int, int] = {}
        """End position of the last message from each image, by correlation id."""

    def leave(self, image: Image) -> int:
        """Drop an incomplete message. Returns the end position of the last whole message, or -1 if
        there is no whole message.
        """
        self._assembler.free_session_buffer(image.session_id)
        return self._ends.pop(image.correlation_id, -1)

    def poll(self, image: Image) -> int:
        """Read the available fragments, unless the pace requires a wait. Returns the number of
        fragments.

        Raises SubjectError if there is more than the stream can contain.
        """
        overrun_guard.check(image, self._length_bytes_max)
        self._reading = image.correlation_id
        if self._pacer.is_unlimited:
            return image.poll(self._assembler, FRAGMENT_LIMIT)
        if self.wait_ns():
            return 0
        return image.poll(self._assembler, PACED_FRAGMENT_LIMIT)

    def wait_ns(self) -> int:
        """Return for how long the pace requires a wait, or 0."""
        return self._pacer.wait_ns(self._clock_ns())

    def _on_message(self, payload: memoryview, header: Header) -> None:
        read_ns = self._wall_clock_ns()
        length = len(payload)
        if self._flip_byte and length and self.message_count == 0:
            damaged = bytearray(payload)
            damaged[length // 2] ^= 0xFF
            payload = memoryview(damaged)
        self._messages.write(payload)
        self._index.write(_RECORD.pack(header.position, length, header.session_id))
        self._times.write(_TIME.pack(read_ns))
        self._ends[self._reading] = header.position
        self.message_count += 1
        self._progress.add(length)
        if not self._pacer.is_unlimited:
            self._pacer.add(length, self._clock_ns())


def run(options: Options, stop: Stop) -> None:
    """Read the stream to its end, and write the subscriber's files even on failure."""
    traffic, files = options.traffic, options.files.subscriber(options.traffic.id)
    files.document.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(traffic.total_bytes)
    facts = _facts(traffic.stream_id)
    with ExitStack() as closing:
        # This runs last: when the document exists, the other files are complete.
        closing.callback(lambda: facts.write(files.document))
        flips = options.sabotage == FLIP_BYTE
        application, tap = _open_files(closing, files, progress, traffic.consume, flips)
        try:
            if traffic.merges is not None:
                _read_merged(options, application, progress, facts, stop)
            elif traffic.rejoins:
                sessions = options.case.sessions_of(traffic)
                parts = Parts(application, tap, facts, sessions)
                Rejoining(options, parts, progress, stop).read()
            else:
                _read_one_image(options, application, tap, progress, facts, stop)
        except BaseException as error:
            facts.error = error_text(error)
            raise
        finally:
            facts.ended_ns = time.time_ns()
            facts.message_count = application.message_count
            facts.message_bytes = progress.count_bytes


def _read_merged(
    options: Options,
    application: Application,
    progress: Progress,
    facts: SubscriberFacts,
    stop: Stop,
) -> None:
    merging = read_merged(options, application, facts, Surroundings.of_process(options))
    try:
        routine.run(merging, stop, progress.report)
    finally:
        progress.report(last=True)


def _read_one_image(
    options: Options,
    application: Application,
    tap: Tap,
    progress: Progress,
    facts: SubscriberFacts,
    stop: Stop,
) -> None:
    traffic = options.traffic
    with Aeron(options.aeron_dir) as aeron, timeouts_as_gave_up(aeron):
        subscriptions = [
            aeron.add_subscription(traffic.receive, traffic.stream_id) for _ in range(2)
        ]
        # Both subscriptions share one endpoint, to which sources are added once.
        for host, source in traffic.sources:
            if host == traffic.to_host:
                subscriptions[0].add_destination(source)
        print_line("ready")
        images = [_wait_for_image(aeron, each, stop) for each in subscriptions]
        print_line(JOINED)
        closes = may_close(traffic)
        _read(aeron, images, application, tap, progress, facts, stop, may_close=closes)
        for each in subscriptions:
            each.close()


def may_close(traffic: TrafficCase) -> bool:
    """Return whether a stream is over when its image is closed without an end-of-stream signal:
    its publication sends none, or the subscriber may be cut off.
    """
    is_signalled = parse_channel(traffic.channel).signals_end
    return not is_signalled or traffic.to_host in traffic.partial


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
    messages, index, times, frames = (
        closing.enter_context(path.open("wb", buffering=BUFFER_BYTES))
        for path in (files.messages, files.index, files.times, files.frames)
    )
    application = Application(messages, index, progress, pace, times=times, flip_byte=flip_byte)
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
    may_close: bool,
) -> None:
    """Poll the application's image and the frame recorder's image of a stream until both have
    ended, or one is closed and `may_close` is true.
    """
    own, tapped = images
    facts.session_id, facts.join_position = own.session_id, own.join_position
    facts.started_ns = time.time_ns()
    try:
        while True:
            work_count = application.poll(own) + tap.poll(tapped)
            progress.report()
            stop.check()
            if work_count:
                continue
            if own.is_end_of_stream and tapped.is_end_of_stream:
                break
            _require_open(aeron)
            if own.is_closed or tapped.is_closed:
                if may_close:
                    break
                raise GaveUp(
                    f"the image was closed at position {own.position} "
                    f"(position of the frame recorder: {tapped.position}), "
                    "before the end of the stream"
                )
            time.sleep(IDLE_S)
    finally:
        facts.end_position = own.position
        facts.eos_seen = own.is_end_of_stream and tapped.is_end_of_stream
        progress.report(last=True)


def _require_open(aeron: Aeron) -> None:
    if aeron.is_closed:
        raise SubjectError(f"the client was closed: {aeron.failure}")
