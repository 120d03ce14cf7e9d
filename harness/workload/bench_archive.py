"""An archive under load: a stream as fast as it can be recorded, then the same as fast as it comes.

    publication --IPC--> archive: recording     count: messages up to the recorded position
        stopped: ends where the publication did, or POSITION
    subscription <--IPC-- archive: replay       count: messages whose number was the one due
        read: all that were sent, up to the same position

One process does both, so that what is replayed can be held against what was sent. The recorded
position is the archive's own counter, which moves once the bytes are written.
"""

import time
from collections.abc import Callable

import numpy as np

from driver.archive.client import AeronArchive, ArchiveContext
from driver.archive.client.recording_counters import find_by_session
from driver.archive.protocol.codes import NULL_VALUE
from driver.client.aeron import Aeron
from driver.client.publication import Publication
from driver.logbuffer import publication_result as result
from harness.artifact.bench_board import Fault, Order, State
from harness.dissect.frames import DATA_HEADER_LENGTH, aligned
from harness.workload.bench_sequence import Batch
from harness.workload.bench_stream import BLOCK_BYTES, PROGRESS_S, Load, Sink

RESPONSES = "aeron:udp?endpoint=127.0.0.1:0"
REPLAYS = "aeron:ipc"


def messages_before(position: int, term_length: int, message_length: int) -> int:
    """How many messages of one length lie before a position; each term ends in padding."""
    frame_length = aligned(DATA_HEADER_LENGTH + message_length)
    terms, offset = divmod(position, term_length)
    per_term = term_length // frame_length
    return terms * per_term + min(offset // frame_length, per_term)


def run_archive(load: Load, aeron: Aeron) -> None:
    """Record until told to stop or the room is full; replay when told to."""
    context = ArchiveContext(
        control_request_channel=load.options.control_channel, control_response_channel=RESPONSES
    )
    with AeronArchive.connect(aeron, context) as archive:
        recorded = _record(load, aeron, archive)
        if recorded is None:
            return
        load.board.state = State.RECORDED
        if _wait(load, aeron, lambda: load.board.order is Order.REPLAY):
            _replay(load, aeron, archive, *recorded)


def _wait(load: Load, aeron: Aeron, condition: Callable[[], bool]) -> bool:
    """Wait for something. Returns False when something is wrong instead."""
    while not condition():
        if not load.is_well(aeron) or load.board.order is Order.LEAVE:
            return False
        time.sleep(PROGRESS_S)
    return True


def _record(load: Load, aeron: Aeron, archive: AeronArchive) -> tuple[int, int, int] | None:
    """Returns (recording id, messages, where it ends), or None when something is wrong."""
    options, board = load.options, load.board
    publication = archive.add_recorded_exclusive_publication(options.channel, options.stream_id)
    session_id = publication.session_id
    if not _wait(load, aeron, lambda: find_by_session(aeron.counters, session_id) is not None):
        return None
    counter = find_by_session(aeron.counters, session_id)
    assert counter is not None, "an active recording keeps its counter"

    def position() -> int:
        return aeron.counters.value(counter.counter_id)

    if not load.wait_for_connection(aeron, publication):
        return None
    board.state = State.CONNECTED
    sent = _publish(load, aeron, publication, position)
    end = publication.position
    if not _wait(load, aeron, lambda: position() >= end):
        return None
    archive.stop_recording_publication(publication)
    publication.close()

    def stop_position() -> int:
        return archive.stop_position(counter.recording_id)

    if not _wait(load, aeron, lambda: stop_position() != NULL_VALUE):
        return None
    if (found := stop_position()) != end:
        board.set_fault(Fault.POSITION, expected=end, found=found)
        return None
    board.message_count = sent
    return counter.recording_id, sent, end


def _publish(
    load: Load, aeron: Aeron, publication: Publication, recorded: Callable[[], int]
) -> int:
    """Offer numbered messages, and tell how many are recorded. Returns how many were sent."""
    options, board = load.options, load.board
    batch = Batch(options.message_length)
    first = sent = 0
    while publication.position < options.bytes_max and load.goes_on(aeron):
        written, answer = publication.offer_batch(batch.rest(first), batch.lengths, first)
        first, sent = first + written, sent + written
        board.message_count = messages_before(
            recorded(), publication.term_length, options.message_length
        )
        if first == batch.count:
            batch.renumber()
            first = 0
        elif answer == result.BACK_PRESSURED:
            if not written:
                options.idle()
        elif answer != result.ADMIN_ACTION:
            board.set_fault(Fault.OFFER_REFUSED, expected=sent, found=answer)
    return sent


def _replay(
    load: Load, aeron: Aeron, archive: AeronArchive, recording_id: int, sent: int, end: int
) -> None:
    """Read the recording, check every number, and where it ends."""
    options, board = load.options, load.board
    sink = Sink(board, options.message_length)
    # Loaded or compiled now, and not when the first message is there.
    sink.on_block(memoryview(np.empty(0, np.uint8)), 0, 0, 0)
    board.state = State.REPLAYING
    subscription = archive.replay(recording_id, REPLAYS, options.stream_id + 1)
    if not _wait(load, aeron, lambda: bool(subscription.images)):
        return
    image = subscription.images[0]
    while image.position < end and load.is_well(aeron):
        if image.block_poll(sink.on_block, BLOCK_BYTES) == 0:
            if image.is_closed:
                board.set_fault(Fault.STREAM_LOST, found=sink.due)
            options.idle()
    if board.fault is Fault.NONE and (image.position, sink.due) != (end, sent):
        board.set_fault(Fault.REPLAYED, expected=sent, found=sink.due)
