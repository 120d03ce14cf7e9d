"""The load on an archive: records a stream at full speed, then replays it at full speed.

    RECORD    publication --IPC--> archive     until the recorded position is the stream's end
    RECORDED  stopped, and the archive reports that end, or the fault POSITION
    REPLAY    archive --IPC--> subscription    to the end; each message's number is checked
    REPLAYED  all messages have arrived, or the fault REPLAYED

One process does both, so the replay can be compared with the messages sent. The time is also taken
here, independently of other processes. The recorded position is a counter of the archive, which
advances once the bytes are written. A recording is purged before the next one.
"""

import time
from collections.abc import Callable

import numpy as np

from windtunnel.driver.archive.client import AeronArchive, ArchiveContext, ArchiveError
from windtunnel.driver.archive.client.recording_counters import RecordingCounter, find_by_session
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.artifact.run.bench_board import Command, Fault, State
from windtunnel.harness.workload.bench.bench_stream import PROGRESS_S, Load, Sink, Writer

RESPONSES = "aeron:udp?endpoint=127.0.0.1:0"
REPLAYS = "aeron:ipc"


def run_archive(load: Load, aeron: Aeron) -> None:
    """Record and replay streams alternately, on the benchmark's commands, until the LEAVE
    command.
    """
    context = ArchiveContext(
        control_request_channel=load.options.control_channel, control_response_channel=RESPONSES
    )
    with AeronArchive.connect(aeron, context) as archive:
        rounds = _Rounds(load, aeron, archive)
        load.board.state = State.CONNECTED
        while rounds.await_command(Command.RECORD) and rounds.record():
            load.board.state = State.RECORDED
            if not (rounds.await_command(Command.REPLAY) and rounds.replay()):
                return
            if not rounds.purge():
                return
            load.board.state = State.REPLAYED


class _Rounds:
    """The benchmark's sequence of recordings. Each recording is replayed and then purged."""

    def __init__(self, load: Load, aeron: Aeron, archive: AeronArchive) -> None:
        self._load, self._aeron, self._archive = load, aeron, archive
        self._options, self._board = load.options, load.board
        self.recording_id = NULL_VALUE
        self._end = 0
        """Position at which the recording ends."""

    def await_command(self, command: Command) -> bool:
        """Wait for a command from the benchmark. Returns False on the LEAVE command or a fault."""
        return self._wait(lambda: self._board.order is command)

    def _wait(self, condition: Callable[[], bool], idle: Callable[[], None] | None = None) -> bool:
        """Wait for a condition. Returns False on the LEAVE command or a fault."""
        while not condition():
            if not self._load.is_well(self._aeron) or self._board.order is Command.LEAVE:
                return False
            (idle or _sleep)()
        return True

    def record(self) -> bool:
        """Publish and record a stream, and report the duration. Returns False on a fault."""
        archive, options = self._archive, self._options
        publication = archive.add_recorded_exclusive_publication(options.channel, options.stream_id)
        if not self._wait(lambda: self._counter(publication) is not None):
            return False
        counter = self._counter(publication)
        assert counter is not None, "a recording keeps its counter while it is active"
        if not self._wait(lambda: publication.is_connected):
            return False
        began_ns = time.monotonic_ns()
        sent = self._publish(publication)
        self._end = publication.position
        values, counter_id = self._aeron.counters, counter.counter_id
        if not self._wait(lambda: values.value(counter_id) >= self._end, options.idle):
            return False
        self._board.set_times(began_ns, time.monotonic_ns())
        archive.stop_recording_publication(publication)
        publication.close()
        self.recording_id = counter.recording_id
        if not self._wait(lambda: self._stop_position() != NULL_VALUE):
            return False
        if (found := self._stop_position()) != self._end:
            self._board.set_fault(Fault.POSITION, expected=self._end, found=found)
        self._board.message_count = sent
        return self._board.fault is Fault.NONE

    def _counter(self, publication: Publication) -> RecordingCounter | None:
        return find_by_session(self._aeron.counters, publication.session_id)

    def _stop_position(self) -> int:
        return self._archive.stop_position(self.recording_id)

    def _publish(self, publication: Publication) -> int:
        """Offer numbered messages. Returns the number of messages sent."""
        options, counts = self._options, np.zeros(1, np.int64)
        writer = Writer(options.message_length)
        while counts[0] < options.message_count and self._load.is_well(self._aeron):
            writer.write(self._load, publication, counts, options.message_count)
        return int(counts[0])

    def replay(self) -> bool:
        """Read a replay of the recording, and report the duration. Returns False on a fault."""
        sent = self._board.message_count
        sink = Sink(self._options.message_length)
        self._board.message_count = 0
        subscription = self._archive.replay(self.recording_id, REPLAYS, self._options.stream_id + 1)
        if not self._wait(lambda: bool(subscription.images)):
            return False
        image = subscription.images[0]
        began_ns = time.monotonic_ns()
        while image.position < self._end and self._load.is_well(self._aeron):
            sink.read(self._load, image)
        self._board.set_times(began_ns, time.monotonic_ns())
        if (image.position, sink.count) != (self._end, sent):
            self._board.set_fault(Fault.REPLAYED, expected=sent, found=sink.count)
        subscription.close()
        return self._board.fault is Fault.NONE

    def purge(self) -> bool:
        """Wait until the archive has purged the recording. Returns False on the LEAVE command or a
        fault.
        """
        return self._wait(self._is_purged)

    def _is_purged(self) -> bool:
        try:
            self._archive.purge_recording(self.recording_id)
        except ArchiveError as error:
            # The replay has sent everything, but is active until the archive has noticed that.
            if error.code != ErrorCode.ACTIVE_RECORDING:
                raise
            return False
        return True


def _sleep() -> None:
    time.sleep(PROGRESS_S)
