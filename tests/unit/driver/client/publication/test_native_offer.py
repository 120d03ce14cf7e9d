"""The native offer behaves like the offer in Python, and never accesses unmapped memory."""

import array
import ctypes
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.driver.client.own_stream import MTU, TERM_LENGTH, OwnStream
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.publication.native_offer import LENGTH_MAX
from windtunnel.driver.kernels.python_method import IS_AVAILABLE
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer import publication_result as result

pytestmark = pytest.mark.skipif(not IS_AVAILABLE, reason="no machine code here")

KINDS = [descriptor.EXCLUSIVE_PUBLICATION, descriptor.CONCURRENT_PUBLICATION]
CONTENT = bytes(range(256)) * 40


@pytest.fixture(params=KINDS, ids=["exclusive", "concurrent"])
def stream(request, tmp_path):
    return OwnStream(tmp_path, log_type=request.param)


def pair(folder, log_type=descriptor.EXCLUSIVE_PUBLICATION):
    made = []
    for name in ("native", "twin"):
        (folder / name).mkdir()
        made.append(OwnStream(folder / name, log_type=log_type))
    made[0].publication.offer(b"binds the native offer")
    made[1].publication._offer_in_python(b"binds the native offer")
    return made


def outcome(function, *arguments, **names):
    """The result of a call, or the type and text of its exception."""
    try:
        return function(*arguments, **names)
    except Exception as error:
        return type(error), str(error)


def natively(publication, *arguments, **names):
    """The result of the native offer, or the arguments that it passes on to the offer in Python."""
    state, fallback = publication._native_state, publication._native_state.fallback
    state.fallback = lambda *arguments, **names: (arguments, names)
    try:
        return vars(publication)["offer"](*arguments, **names)
    finally:
        state.fallback = fallback


MADE = {
    "bytes": lambda part: bytes(part),
    "bytearray": lambda part: bytearray(part),
    "view": lambda part: memoryview(part),
    "writable view": lambda part: memoryview(bytearray(part)),
    "array": lambda part: np.frombuffer(part, np.uint8).copy(),
    "read-only array": lambda part: np.frombuffer(part, np.uint8),
    "floats": lambda part: np.arange(len(part), dtype=np.float64),
    "records": lambda part: np.zeros(len(part), [("number", "i4"), ("name", "S3")]),
    "rows": lambda part: np.zeros((len(part), 3), np.int16),
    "array.array": lambda part: array.array("h", range(len(part))),
    "C array": lambda part: (ctypes.c_uint16 * len(part))(*part),
    "number": lambda part: np.float64(len(part)),
}
CONVERTED = {
    "columns": lambda part: np.asfortranarray(np.arange(2 * len(part)).reshape(2, -1)),
    "every second": lambda part: np.frombuffer(part, np.uint8)[::2],
    "backwards": lambda part: memoryview(part)[::-1],
    "dates": lambda part: np.zeros(len(part), "datetime64[s]"),
    "objects": lambda part: np.array([None] * len(part), object),
    "records with objects": lambda part: np.zeros(len(part), [("number", "i4"), ("it", "O")]),
    "text": lambda part: part.decode("latin-1"),
    "nothing": lambda part: None,
    "an int": lambda part: len(part),
    "a list": lambda part: list(part),
}


@pytest.mark.parametrize("log_type", KINDS, ids=["exclusive", "concurrent"])
@pytest.mark.parametrize("length", [0, 1, 32, MTU - 32, MTU - 31, 5_000])
def test_every_kind_of_message_is_written_as_in_python(tmp_path, log_type, length):
    native, twin = pair(tmp_path, log_type)
    part = CONTENT[:length]
    for name, make in (MADE | CONVERTED).items():
        message = make(part)
        expected = outcome(twin.publication._offer_in_python, message)
        assert outcome(native.publication.offer, message) == expected, name
        for each in (native, twin):
            outcome(each.image.poll, lambda payload, header: None, 1_000)
    assert np.array_equal(native.mapped.log, twin.mapped.log)


@pytest.mark.parametrize("name", MADE)
def test_contiguous_bytes_need_no_python(stream, name):
    stream.publication.offer(b"binds the native offer")
    assert natively(stream.publication, MADE[name](CONTENT[:20])) > 64


@pytest.mark.parametrize("name", CONVERTED)
def test_other_messages_are_left_to_python(stream, name):
    stream.publication.offer(b"binds the native offer")
    before = stream.mapped.log.copy()
    message = CONVERTED[name](CONTENT[:20])
    (passed,), names = natively(stream.publication, message)
    assert passed is message
    assert names == {}
    assert np.array_equal(stream.mapped.log, before)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(0, 9_000)),
        st.tuples(st.just("limit"), st.integers(0, 3 * TERM_LENGTH)),
        st.tuples(st.just("connect"), st.booleans()),
        st.tuples(st.just("close"), st.just(0)),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(STEPS, st.sampled_from(KINDS))
def test_any_sequence_of_offers_gives_the_results_of_python(tmp_path_factory, steps, log_type):
    native, twin = pair(tmp_path_factory.mktemp("pair"), log_type)
    for number, (what, value) in enumerate(steps):
        message = bytes([number]) * value if what == "offer" else b""
        for each in (native, twin):
            if what == "limit":
                each.limit_to(value)
            elif what == "connect":
                each.connect(value)
            elif what == "close":
                each.publication.close()
        found = native.publication.offer(message)
        assert found == twin.publication._offer_in_python(message)
    assert np.array_equal(native.mapped.log, twin.mapped.log)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((b"12", 1), {}), ((b"12", 0, 2), {}), ((b"12", 0, None, 7), {}), ((), {}),
        ((b"12",), {"reserved_value": len}), ((b"12",), {"offset": 0}), ((), {"message": b"12"}),
        ((b"12", 0, None, 0, 0), {}),
    ],
)  # fmt: skip
def test_other_arguments_are_passed_on_to_the_offer_in_python(stream, arguments, names):
    stream.publication.offer(b"binds the native offer")
    assert natively(stream.publication, *arguments, **names) == (arguments, names)
    expected = outcome(OwnStreamOffer(stream), *arguments, **names)
    assert outcome(stream.publication.offer, *arguments, **names) == expected


class OwnStreamOffer:
    """The offer in Python, with the position that the stream had before."""

    def __init__(self, stream):
        self._stream = stream

    def __call__(self, *arguments, **names):
        position = self._stream.publication._offer_in_python(*arguments, **names)
        return position + 64


def test_a_message_as_long_as_a_message_can_be(stream):
    longest = stream.publication.max_message_length
    assert longest < LENGTH_MAX
    stream.publication.offer(b"binds the native offer")
    assert natively(stream.publication, bytes(longest + 1)) == result.ERROR
    assert natively(stream.publication, bytes(longest)) > 0
    for make in (bytes, bytearray):
        assert natively(stream.publication, make(LENGTH_MAX)) == result.ERROR
        assert natively(stream.publication, make(LENGTH_MAX + 1)) == ((bytes(LENGTH_MAX + 1),), {})


def test_a_closed_publication_writes_nothing_and_releases_its_log(stream):
    publication = stream.publication
    publication.offer(b"binds the native offer")
    kept = publication.offer
    publication.close()
    assert "offer" not in vars(publication)
    before = stream.mapped.log.copy()
    for offer in (kept, publication.offer):
        assert offer(b"1") == offer(bytearray(1)) == offer(None) == offer(b"1", 0) == result.CLOSED
    assert np.array_equal(stream.mapped.log, before)
    assert publication._native_state.arrays == ()


def test_a_log_is_unmapped_after_its_publication_is_closed(tmp_path):
    stream = OwnStream(tmp_path)
    stream.publication.offer(b"binds the native offer")
    stream.image.poll(lambda payload, header: None)
    offer, poll = stream.publication.offer, stream.image.poll
    unmapped = []
    weakref.finalize(stream.mapped.log.base.obj, unmapped.append, True)
    stream.publication.close()
    stream.image.on_unavailable()
    stream.mapped.close()
    assert unmapped == [True]
    assert (offer(b"1"), poll(lambda payload, header: None)) == (result.CLOSED, 0)


def test_a_method_that_outlives_everything_keeps_the_log_mapped(tmp_path):
    stream = OwnStream(tmp_path)
    stream.publication.offer(b"binds the native offer")
    offer = stream.publication.offer
    stream.mapped.close()
    del stream
    gc.collect()
    assert offer(b"into memory that nobody else refers to") > 64


def test_a_publication_that_is_dropped_can_be_collected(tmp_path):
    stream = OwnStream(tmp_path)
    stream.publication.offer(b"binds the native offer")
    dropped = weakref.ref(stream.publication)
    del stream
    gc.collect()
    assert dropped() is None


def test_an_offer_of_a_subclass_is_kept(tmp_path):
    class Counting(ExclusivePublication):
        offers = 0

        def offer(self, message, *arguments):
            self.offers += 1
            return super().offer(message, *arguments)

    stream = OwnStream(tmp_path)
    counting = Counting(
        stream.conductor, stream.mapped, channel="own", registration_id=7,
        original_registration_id=7, limit_counter_id=4, channel_status_id=-1,
    )  # fmt: skip
    assert [counting.offer(b"1"), counting.offer(b"2")] == [64, 128]
    assert counting.offers == 2


class Exporter:
    """An object with a buffer that runs Python code."""

    def __init__(self, take=lambda: None, release=lambda: None):
        self.take, self.release, self.content = take, release, bytearray(b"exported")
        self.exports = 0

    def __buffer__(self, flags):
        self.take()
        self.exports += 1
        return memoryview(self.content)

    def __release_buffer__(self, view):
        self.exports -= 1
        view.release()
        self.release()


needs_exporters = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="classes have no __buffer__ before Python 3.12"
)


@needs_exporters
def test_a_buffer_that_closes_the_publication_is_not_written(stream):
    stream.publication.offer(b"binds the native offer")
    before = stream.mapped.log.copy()
    message = Exporter(take=stream.publication.close)
    assert stream.publication.offer(message) == result.CLOSED
    assert message.exports == 0
    assert np.array_equal(stream.mapped.log, before)


@needs_exporters
def test_a_buffer_that_closes_the_publication_on_release_is_written_before(stream):
    stream.publication.offer(b"binds the native offer")
    message = Exporter(release=stream.publication.close)
    position = stream.publication.offer(message)
    assert position == 64 + 64
    assert stream.publication.is_closed
    assert stream.mapped.log[64 + 32 : 64 + 40].tobytes() == b"exported"


@needs_exporters
def test_a_buffer_that_offers_is_written_after_its_own_message(stream):
    stream.publication.offer(b"binds the native offer")
    message = Exporter(take=lambda: stream.publication.offer(b"inner"))
    assert stream.publication.offer(message) == 3 * 64
    assert stream.mapped.log[96:101].tobytes() == b"inner"
    assert message.exports == 0


@needs_exporters
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, BufferError, ValueError])
def test_an_exception_of_a_buffer_is_raised(stream, error):
    def fail():
        raise error("no buffer")

    stream.publication.offer(b"binds the native offer")
    with pytest.raises(error, match="no buffer"):
        stream.publication.offer(Exporter(take=fail))
    assert stream.publication.position == 64


def test_no_reference_is_lost_or_kept(stream):
    offer = stream.publication.offer
    offer(b"binds the native offer")
    messages = [make(CONTENT[:20]) for make in MADE.values()]
    messages += [CONTENT[:4_000], bytearray(70_000), None, np.zeros(4)[::2]]
    before = [sys.getrefcount(each) for each in messages]
    for _ in range(200):
        for each in messages:
            outcome(offer, each)
            outcome(natively, stream.publication, each)
        stream.image.poll(lambda payload, header: None, 1_000)
    del each
    assert [sys.getrefcount(each) for each in messages] == before
    for message in messages:
        if isinstance(message, bytearray):
            message.append(1)  # It would raise BufferError if a buffer had not been released.


def test_a_million_offers_need_no_more_memory_than_one(stream):
    offer, message, count = stream.publication.offer, b"0123456789" * 3, 1_000_000
    stream.limit_to(1 << 40)
    offer(message)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        refused = sum(offer(message) < 0 for _ in range(count))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # One refused offer per term, which is then rotated.
    assert refused <= 2 * count * 64 // TERM_LENGTH
    assert grown < 10_000


def test_kept_positions_do_not_change(stream):
    stream.publication.offer(b"binds the native offer")
    kept = [stream.publication.offer(b"1") for _ in range(900)]
    assert kept == [64 * number for number in range(2, 902)]


def test_threads_that_share_a_publication_lose_nothing(tmp_path):
    stream = OwnStream(tmp_path, log_type=descriptor.CONCURRENT_PUBLICATION)
    stream.publication.offer(b"binds the native offer")
    # Less than three terms in all, because no driver clears the log behind the reader.
    threads, count, seen, positions = 4, 700, [], []
    stream.image.poll(lambda payload, header: None)

    def write(name):
        for number in range(count):
            message = b"%d %d" % (name, number)
            position = -1
            while position < 0:
                position = stream.publication.offer(message if number % 3 else bytearray(message))
            positions.append(position)

    workers = [threading.Thread(target=write, args=(name,)) for name in range(threads)]
    for worker in workers:
        worker.start()
    while len(seen) < threads * count:
        read = stream.image.poll(lambda payload, header: seen.append(bytes(payload)), 100)
        assert read or any(worker.is_alive() for worker in workers) or len(seen) == threads * count
    for worker in workers:
        worker.join(60)
    assert len({*positions}) == threads * count
    for name in range(threads):
        own = [int(each.split()[1]) for each in seen if each.split()[0] == b"%d" % name]
        assert own == list(range(count))
