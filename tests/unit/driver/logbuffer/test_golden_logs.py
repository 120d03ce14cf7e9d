"""Byte-for-byte comparison with Aeron's metadata, publications and rebuilt images."""

import re
import struct

import numpy as np
import pytest

from tests.golden.reader import GOLDEN, datagrams, load_array, message, seen_by
from windtunnel.driver.logbuffer import (
    appender,
    cleaner,
    descriptor,
    gap_filler,
    gap_scanner,
    position,
    reader,
    rebuilder,
)
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise
from windtunnel.driver.wire import data, header
from windtunnel.driver.wire import frame_type as types

UNLIMITED = 1 << 62
PUBLICATION = "publication-4.logbuffer"
IMAGE = "image-5.logbuffer"
RESERVED = 0

# What differs between the sets; the ids were chosen at random by that run.
SETS = {
    "one-message": {"window": 32768, "exclusive": True, "max": 992, "reliable": True},
    "clean": {"window": 32768, "exclusive": True, "max": 5000, "reliable": True},
    "loss-unreliable": {"window": 65536, "exclusive": True, "max": 1300, "reliable": False},
    "loss-concurrent-mtu8k": {"window": 131072, "exclusive": False, "max": 9000, "reliable": True},
}


def parameters(golden_set: str, log_type: int) -> LogParameters:
    """Parameters that were configured or chosen by the driver for these logs."""
    seen, is_image = seen_by(golden_set, "pub.txt"), log_type == descriptor.IMAGE
    return LogParameters(
        type=log_type,
        correlation_id=5 if is_image else 4,
        session_id=seen["session"],
        stream_id=1001,
        initial_term_id=seen["initialTermId"],
        term_length=seen["termLength"],
        mtu_length=seen["mtu"],
        publication_window_length=0 if is_image else int(SETS[golden_set]["window"]),
        receiver_window_length=131072 if is_image else 0,
        os_default_socket_sndbuf_length=212992,
        os_default_socket_rcvbuf_length=212992,
        entity_tag=0 if is_image else -1,
        response_correlation_id=0 if is_image else -1,
        linger_timeout_ns=0 if is_image else 5_000_000_000,
        untethered_window_limit_timeout_ns=5_000_000_000,
        untethered_resting_timeout_ns=10_000_000_000,
        untethered_linger_timeout_ns=5_000_000_000,
        rejoin=is_image,
        reliable=is_image and bool(SETS[golden_set]["reliable"]),
        sparse=True,
        signal_eos=not is_image,
        tether=is_image,
    )


def new_log(golden_set: str, log_type: int) -> tuple[np.ndarray, int]:
    chosen = parameters(golden_set, log_type)
    log = np.zeros(int(descriptor.log_length(chosen.term_length, 4096)), dtype=np.uint8)
    meta_at = int(descriptor.meta_at(log.size))
    initialise(log, meta_at, chosen)
    return log, meta_at


def publication_type(golden_set: str) -> int:
    exclusive = SETS[golden_set]["exclusive"]
    return descriptor.EXCLUSIVE_PUBLICATION if exclusive else descriptor.CONCURRENT_PUBLICATION


def assert_same_terms(ours: np.ndarray, golden: np.ndarray, end: int, term_length: int) -> None:
    """Compare all bytes that Aeron had not cleaned: the last term length before `end`."""
    begin = max(0, end - 3 * term_length)
    order = np.arange(begin, end) % (3 * term_length)
    mine, theirs = ours[order], golden[order]
    written = np.flatnonzero(theirs)
    kept_from = int(written[0]) // 32 * 32
    assert begin + kept_from <= max(0, end - term_length)
    np.testing.assert_array_equal(mine[kept_from:], theirs[kept_from:])


def dump(name: str) -> dict[int, bytes]:
    """The rows of a hex dump; a `*` repeats the row above up to the next one."""
    rows: dict[int, bytes] = {}
    repeated = False
    for line in (GOLDEN / "log-buffer-example" / name).read_text().splitlines():
        if line == "*":
            repeated = True
            continue
        address, *octets = re.findall(r"[0-9a-f]+", line)
        here = int(address, 16)
        if repeated:
            last = max(rows)
            rows.update((at, rows[last]) for at in range(last + 16, here, 16))
        repeated = False
        if octets:
            rows[here] = bytes.fromhex("".join(octets))
    return rows


def test_the_documented_example_byte_for_byte() -> None:
    log = np.zeros(0x31000, dtype=np.uint8)
    chosen = LogParameters(
        type=descriptor.CONCURRENT_PUBLICATION,
        correlation_id=2,
        session_id=404496857,
        stream_id=123,
        initial_term_id=1598247139,
        term_length=65536,
        mtu_length=1408,
    )
    initialise(log, 0x30000, chosen)
    descriptor.put_is_connected_release(log, 0x30000, True)
    empty = dump("empty.hex")
    assert sorted(empty) == list(range(0, 0x31000, 16))
    assert log.tobytes() == b"".join(empty[at] for at in sorted(empty))

    payload = b"".join(b"<msg001-part%03d>" % part for part in range(62))
    source = np.frombuffer(payload, dtype=np.uint8).copy()
    publication = appender.attach(log, 0x30000)
    assert appender.offer(publication, log, UNLIMITED, source, 0, source.size, RESERVED) == 1024
    changed = dump("one-message.hex")
    assert len(changed) == 7
    for at, row in changed.items():
        assert bytes(log[at : at + 16]) == row
    for at in range(0x400, 0x31000, 16):
        assert bytes(log[at : at + 16]) == changed.get(at, empty[at])


@pytest.mark.parametrize("golden_set", SETS)
@pytest.mark.parametrize("name", [PUBLICATION, IMAGE])
def test_metadata_equals(golden_set: str, name: str) -> None:
    log_type = descriptor.IMAGE if name == IMAGE else publication_type(golden_set)
    golden = load_array(golden_set, name)
    log, meta_at = new_log(golden_set, log_type)
    assert golden.size == log.size
    assert descriptor.check_log(golden, meta_at) == descriptor.OK
    live = slice(meta_at, meta_at + descriptor.CORRELATION_ID)
    np.testing.assert_array_equal(log[live.stop :], golden[live.stop :])
    if name == IMAGE:
        descriptor.put_active_transport_count_release(log, meta_at, 1)
        np.testing.assert_array_equal(log[live], golden[live])


@pytest.mark.parametrize("golden_set", SETS)
def test_the_same_messages_give_the_same_publication(golden_set: str) -> None:
    golden = load_array(golden_set, PUBLICATION)
    log, meta_at = new_log(golden_set, publication_type(golden_set))
    publication = appender.attach(log, meta_at)
    term_length = int(publication[0].term_length)
    descriptor.put_is_connected_release(log, meta_at, True)
    seen = seen_by(golden_set, "pub.txt")
    stream_end, rotations, index = 0, 0, 0
    count = 600 if golden_set.startswith("loss") else {"clean": 400, "one-message": 1}[golden_set]
    while index < count:
        source = message(index, int(SETS[golden_set]["max"]))
        outcome = appender.offer(publication, log, UNLIMITED, source, 0, source.size, RESERVED)
        if outcome == result.ADMIN_ACTION:
            rotations += 1
            cleaner.clean(log, (rotations % 3) * term_length, 0, term_length)
            continue
        assert outcome > stream_end
        stream_end = int(outcome)
        index += 1
    assert (stream_end, rotations) == (seen["position"], seen["adminActions"])
    assert descriptor.producer_position(log, meta_at) == stream_end
    np.testing.assert_array_equal(log[meta_at:], golden[meta_at:])
    assert_same_terms(log, golden, stream_end, term_length)


def image_datagrams(golden_set: str, term_length: int) -> list[np.ndarray]:
    """The data datagrams of the capture in the order they were sent, heartbeats left out."""
    found = []
    for datagram in datagrams(golden_set):
        if struct.unpack_from("<H", datagram.payload, 6)[0] <= types.DATA:
            buf = np.frombuffer(datagram.payload, dtype=np.uint8).copy()
            if data.validate(buf, 0, buf.size, term_length) > 0:
                found.append(buf)
    return found


class Rebuilt:
    """An image rebuilt from datagrams; a term is cleaned when the stream first enters it."""

    def __init__(self, golden_set: str) -> None:
        self.log, self.meta_at = new_log(golden_set, descriptor.IMAGE)
        descriptor.put_active_transport_count_release(self.log, self.meta_at, 1)
        self.term_length = int(descriptor.term_length(self.log, self.meta_at))
        self.bits = self.term_length.bit_length() - 1
        self.initial = int(descriptor.initial_term_id(self.log, self.meta_at))
        self.hwm = 0
        self.newest_count = 0

    def base(self, at: int) -> int:
        return int(position.index(at, self.bits)) * self.term_length

    def place(self, buf: np.ndarray) -> int:
        """The position of a datagram."""
        term_id, offset = data.term_id(buf, 0), data.term_offset(buf, 0)
        return int(position.of(term_id, offset, self.bits, self.initial))

    def insert(self, buf: np.ndarray) -> None:
        at = self.place(buf)
        if at >> self.bits > self.newest_count:
            self.newest_count = at >> self.bits
            cleaner.clean(self.log, self.base(at), 0, self.term_length)
        reach = int(data.validate(buf, 0, buf.size, self.term_length))
        offset = at & (self.term_length - 1)
        rebuilder.insert(self.log, self.base(at), offset, buf, 0, buf.size)
        self.hwm = max(self.hwm, at + reach)


@pytest.mark.parametrize("golden_set", ["one-message", "clean", "loss-concurrent-mtu8k"])
def test_the_captured_datagrams_give_the_same_image(golden_set: str) -> None:
    golden, image = load_array(golden_set, IMAGE), Rebuilt(golden_set)
    for buf in image_datagrams(golden_set, image.term_length):
        image.insert(buf)
    assert image.hwm == seen_by(golden_set, "sub.txt")["imagePosition"]
    np.testing.assert_array_equal(image.log[image.meta_at :], golden[image.meta_at :])
    assert_same_terms(image.log, golden, image.hwm, image.term_length)


def padded_gaps(golden: np.ndarray, image: Rebuilt, at: int, end: int) -> list[tuple[int, int]]:
    """Position ranges of a golden image that are padding, except for ends of terms."""
    found = []
    while at < end:
        offset = at & (image.term_length - 1)
        kind = header.frame_type(golden, image.base(at) + offset)
        following = reader.committed_end(golden, image.base(at), image.term_length, offset)
        assert following > offset
        if kind == types.PAD and following < image.term_length:
            found.append((at, at + int(following) - offset))
        at += int(following) - offset
    return found


def fill_gaps(image: Rebuilt, at: int) -> list[tuple[int, int]]:
    """Pad every gap between `at` and the high-water mark; returns their position ranges."""
    filled = []
    while at < image.hwm:
        base, offset = image.base(at), at & (image.term_length - 1)
        limit = min(image.term_length, image.hwm - (at - offset))
        begin, length = gap_scanner.scan(image.log, base, offset, limit)
        if length > 0:
            term_id = image.initial + (at >> image.bits)
            assert gap_filler.try_fill(image.log, base, image.meta_at, term_id, begin, length)
            assert not gap_filler.try_fill(image.log, base, image.meta_at, term_id, begin, length)
            filled.append((at - offset + int(begin), at - offset + int(begin + length)))
        at += int(begin + length) - offset
    return filled


def test_the_same_losses_leave_the_same_padding() -> None:
    golden, image = load_array("loss-unreliable", IMAGE), Rebuilt("loss-unreliable")
    end = seen_by("loss-unreliable", "sub.txt")["imagePosition"]
    sent = image_datagrams("loss-unreliable", image.term_length)
    # The other driver cleaned up to one term length behind the end, which cuts through a frame.
    kept = [image.place(buf) for buf in sent if image.place(buf) >= end - image.term_length]
    start = next(
        at for at in sorted(kept) if golden[image.base(at) + at % image.term_length :][:4].any()
    )
    holes = padded_gaps(golden, image, start, end)
    assert len(holes) > 3
    for buf in sent:
        if not any(begin <= image.place(buf) < stop for begin, stop in holes):
            image.insert(buf)
    assert image.hwm == end
    assert fill_gaps(image, start) == holes
    order = np.arange(start, end) % (3 * image.term_length)
    np.testing.assert_array_equal(image.log[order], golden[order])
