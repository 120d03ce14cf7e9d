"""Runs of datagrams: put together as a naive reader would, and cut up again by a real system."""

import socket

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.media import segmentation, transport
from windtunnel.driver.media.link import NO_LINKS
from windtunnel.driver.media.system_message import UDP_OFFLOAD

SO_NO_CHECK = 11
NO_NAME = np.zeros(28, dtype=np.uint8)


def naive_runs(entries):
    """Runs as lists of entries: one more joins while it lies behind and is no longer."""
    runs = []
    for address, length in entries:
        run = runs[-1] if runs else []
        total = sum(item[1] for item in run)
        joins = (
            run
            and address == run[0][0] + total
            and length <= run[0][1]
            and run[-1][1] == run[0][1]
            and len(run) < segmentation.RUN_SEGMENTS_MAX
            and total + length <= segmentation.RUN_LENGTH_MAX
        )
        if joins:
            run.append((address, length))
        else:
            runs.append([(address, length)])
    return runs


@given(
    st.lists(st.tuples(st.sampled_from([32, 64, 1408, 9000]), st.booleans()), max_size=70),
    st.integers(0, 5),
)
def test_runs_are_what_a_naive_reader_puts_together(shapes, first):
    entries, at = [], 1 << 20
    for length, has_gap in shapes:
        at += 4096 if has_gap else 0
        entries.append((at, length))
        at += length
    first = min(first, len(entries))
    batch = transport.make_send_batch(max(len(entries), 1))
    for index, (address, length) in enumerate(entries):
        transport.set_outgoing(batch, index, address, length)
    count = len(entries) - first
    made = segmentation.gather_runs(batch.runs, batch.vectors, first, count)
    expected = naive_runs(entries[first:])
    assert made == len(expected)
    behind = first
    for index, run in enumerate(expected):
        behind += len(run)
        assert batch.runs.ends[index] == behind
        assert batch.runs.vectors[index].address == run[0][0]
        assert batch.runs.vectors[index].length == sum(item[1] for item in run)
        assert (batch.runs.headers[index].control_length > 0) == (len(run) > 1)


def open_pair(*, is_offloading):
    receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiving.setblocking(False)
    if is_offloading:
        receiving.setsockopt(*UDP_OFFLOAD, 1)
    receiving.bind(("127.0.0.1", 0))
    sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sending.connect(receiving.getsockname())
    return sending, receiving


def fill(batch, memory, lengths):
    at = 0
    for index, length in enumerate(lengths):
        transport.set_outgoing(batch, index, address_of(memory) + at, length)
        at += length


@pytest.mark.parametrize("is_offloading", [False, True])
def test_a_run_arrives_as_the_datagrams_it_was_made_of(is_offloading):
    lengths = [1408] * 20 + [640] + [96] * 3
    memory = np.arange(sum(lengths), dtype=np.uint64).astype(np.uint8)
    outbox = transport.make_send_batch(len(lengths), gso_enabled=True)
    fill(outbox, memory, lengths)
    sending, receiving = open_pair(is_offloading=is_offloading)
    with sending, receiving:
        sent = transport.send_gathered(
            sending.fileno(), outbox, 0, len(lengths), NO_NAME, 0, NO_LINKS
        )
        assert sent == len(lengths)
        inbox = transport.make_receive_batch(64, 65_536)
        messages = transport.receive(receiving.fileno(), inbox, NO_LINKS)
    datagrams = []
    for index in range(messages):
        at, total = transport.incoming_at(inbox, index), transport.incoming_length(inbox, index)
        segment = transport.segment_length(inbox, index)
        for begin in range(0, total, segment):
            end = min(begin + segment, total)
            datagrams.append(bytes(inbox.slots[at + begin : at + end]))
    assert [len(item) for item in datagrams] == lengths
    assert b"".join(datagrams) == memory.tobytes()
    assert (messages < len(lengths)) == is_offloading


def test_a_way_that_takes_no_runs_is_served_one_by_one():
    lengths = [1408] * 4
    memory = np.zeros(sum(lengths), dtype=np.uint8)
    outbox = transport.make_send_batch(8, gso_enabled=True)
    fill(outbox, memory, lengths)
    sending, receiving = open_pair(is_offloading=False)
    with sending, receiving:
        # A socket without checksums refuses to cut runs up.
        sending.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        sent = transport.send_gathered(sending.fileno(), outbox, 0, 4, NO_NAME, 0, NO_LINKS)
        assert sent == 4
        assert outbox.gso_enabled[0] == 0
        inbox = transport.make_receive_batch(8, 2048)
        assert transport.receive(receiving.fileno(), inbox, NO_LINKS) == 4
