"""An image's log with old frames gives the same results as an empty one."""

import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.driver.media_driver.receiving_rig import TERM, ReceivingRig, data, heartbeat, pad
from windtunnel.driver.media_driver.image import image_cleaning, publication_image, written_pages

PAGE = written_pages.PAGE_LENGTH
BITS = 16
OLD = 0x5A
HALF = TERM // 2


class Image:
    """The record of an image, with a log of three terms and a page map."""

    def __init__(self, clean_position=0, *, has_pages=True, written=True):
        records, _ = publication_image.make_images(1)
        self.record = records[0]
        self.log = np.full(3 * TERM + 4096, OLD if written else 0, np.uint8)
        self.pages = written_pages.make_pages(TERM)
        self.pages[:] = written
        self.record.term_length, self.record.bits = TERM, BITS
        self.record.log_address, self.record.log_length = self.log.ctypes.data, self.log.size
        self.record.pages_address = self.pages.ctypes.data
        self.record.pages_length = self.pages.size if has_pages else 0
        self.record.clean_position = clean_position

    def prepare(self, begin, end):
        image_cleaning.prepare(self.record, begin, end)


SLOTS = st.integers(0, 4 * TERM // 32)


@given(SLOTS, SLOTS, st.integers(0, 300), st.booleans())
def test_the_gap_and_the_slots_around_it_become_empty(clean, first, slots, has_pages):
    begin, end = 32 * first, 32 * (first + slots)
    # Within half a term of the clean position, as flow control provides.
    begin, end = min(begin, 32 * clean + HALF), min(end, 32 * clean + HALF)
    image = Image(32 * clean, has_pages=has_pages)
    expected = image.log.copy()
    if end > 32 * clean or (end == 32 * clean and begin < end):
        left_out = range(32 * clean, begin if begin >= 32 * clean else end)
        empty = {*left_out, *range(end, end + 8)}
        if len(left_out) > 0:
            empty |= set(range(left_out.stop, left_out.stop + 8))
        expected[[at % (3 * TERM) for at in empty]] = 0
    image.prepare(begin, end)
    assert np.array_equal(image.log, expected)
    assert image.record.clean_position == max(end, 32 * clean)
    assert image_cleaning.is_beyond(image.record, image.record.clean_position)
    assert not image_cleaning.is_beyond(image.record, image.record.clean_position - 32)


def test_pages_that_were_never_written_are_not_read():
    image = Image(written=False)
    image.log[:] = OLD
    image.pages[3] = 1
    image.prepare(6 * PAGE, 7 * PAGE)
    assert not image.log[3 * PAGE : 4 * PAGE].any()
    assert (np.delete(image.log, range(3 * PAGE, 4 * PAGE)) == OLD).all()


@pytest.mark.parametrize("end", [1 << 40, (1 << 31) * TERM])
def test_a_position_far_beyond_the_window_takes_two_terms_at_most(end):
    image = Image(64)
    image.prepare(end, end)
    assert np.count_nonzero(image.log[: 3 * TERM] == 0) == 2 * TERM + 8
    assert image.record.clean_position == end


def readable(log, hwm):
    """Walk a log up to rcv-hwm as readers and the search for gaps do: frames, gaps and the next
    slot.
    """
    found, at = [], 0
    while at < hwm:
        (length,) = struct.unpack_from("<i", log, at % (3 * TERM))
        if length == 0:
            found.append((at, None))
            at += 32
            continue
        assert length > 0, at
        is_pad = log[at % (3 * TERM) + 6] == 0
        begin = at % (3 * TERM)
        found.append((at, log[begin : begin + (32 if is_pad else length)].tobytes()))
        at += -(-length // 32) * 32
    return [*found, struct.unpack_from("<i", log, at % (3 * TERM))]


def datagrams(chance):
    """Make datagrams, padding and heartbeats of one and a half terms, some of them lost, some again
    and some late.
    """
    made, at = [], 0
    while at < 3 * HALF - 4096:
        left = TERM - at % TERM
        lengths = [chance.randrange(1, 1300) for _ in range(chance.randrange(1, 4))]
        size = sum(-(-(32 + each) // 32) * 32 for each in lengths)
        if size > left or chance.random() < 0.1:
            size = left if left < 4096 or size > left else 32 * chance.randrange(1, 100)
            made.append((at, pad(at, size)))
        else:
            made.append((at, data(at, *lengths)))
        at += size
        if chance.random() < 0.1:
            made.append((at, heartbeat(at)))
    kept = [each for each in made if chance.random() < 0.8]
    kept += [each for each in made if chance.random() < 0.1]
    late = [(at + chance.choice([0, 0, 0, 5_000, 20_000]), each) for at, each in kept]
    return [each for _, each in sorted(late, key=lambda each: each[0])]


@pytest.mark.full(keep=6)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("has_pages", [True, False])
def test_old_frames_are_never_seen(tmp_path, seed, has_pages):
    rigs = []
    for name in ("old", "empty"):
        (tmp_path / name).mkdir()
        rig = ReceivingRig(tmp_path / name)
        rig.start()
        rigs.append(rig)
    old, empty = rigs
    old.pair.image_log.log[: 3 * TERM] = OLD
    old.pair.image_log.log[:8] = 0
    if has_pages:
        pages = np.ones(3 * TERM // PAGE, np.uint8)
        record = old.state.images[0]
        record.pages_address, record.pages_length = pages.ctypes.data, pages.size
    for rig in rigs:
        rig.state.images[0].over_run_threshold = 3 * TERM
    for datagram in datagrams(random.Random(seed)):
        for rig in rigs:
            rig.deliver(datagram)
            rig.turn()
        assert old.positions == empty.positions
        _, hwm = old.positions
        seen = readable(old.log(), hwm)
        assert seen == readable(empty.log(), hwm)
        assert seen[-1] == (0,)


def test_a_datagram_that_overlaps_another_leaves_an_empty_gap_up_to_its_end(tmp_path):
    rig = ReceivingRig(tmp_path)
    rig.start()
    rig.pair.image_log.log[8 : 3 * TERM] = OLD
    rig.deliver(data(0, 992), data(0, 992, 992))
    rig.turn()
    rig.turn()
    assert rig.positions == (1024, 2048)
    assert not rig.log()[1024 : 2048 + 8].any()
