"""The native polls behave like the polls in Python, and never access unmapped memory."""

import contextlib
import gc
import sys
import tempfile
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.driver.client.own_stream import MTU, TERM_LENGTH, OwnStream
from windtunnel.driver.base.atomics import put_i32
from windtunnel.driver.client.image.header import Action
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.image.native_poll import NO_LIMIT
from windtunnel.driver.client.image.payload_view import NEVER_MOVED
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.kernels.python_method import IS_AVAILABLE

pytestmark = pytest.mark.skipif(not IS_AVAILABLE, reason="no machine code here")

ONE = 64  # what a message of up to 32 bytes occupies
FIELDS = (
    *("position", "flags", "frame_type", "session_id", "stream_id", "term_id", "term_offset"),
    "reserved_value",
)


@pytest.fixture
def stream(tmp_path):
    return bound(OwnStream(tmp_path))


def bound(stream):
    """Bind the native polls, and read a first message."""
    stream.write(b"binds the native polls")
    assert stream.image.poll(lambda payload, header: None) == 1
    assert {"poll", "controlled_poll"} <= set(vars(stream.image))
    return stream


class Equal:
    """Equals one action, like an enum of the application's own."""

    def __init__(self, action):
        self.action = action

    def __eq__(self, other):
        return other == self.action


class Unequal:
    def __eq__(self, other):
        raise LookupError("not comparable")


ANSWERS = {
    "none": None, "text": "ABORT", "true": True, "float": 2.0, "five": 5, "unequal": Unequal(),
    **{f"action {each.name}": each for each in Action},
    **{f"int {each.name}": int(each) for each in Action},
    **{f"equal {each.name}": Equal(each) for each in Action},
}  # fmt: skip


class Handler:
    """Executes a step of its script at each fragment, and records all that it sees."""

    def __init__(self, stream, poll, script):
        self.stream, self.poll, self.script = stream, poll, list(script)
        self.seen, self.kept = [], []

    def __call__(self, payload, header):
        step = self.script.pop(0) if self.script else "none"
        fields = [getattr(header, field) for field in FIELDS]
        self.seen.append((step, bytes(payload), fields, self.stream.counted_position()))
        assert header.image is self.stream.image
        assert (payload.readonly, payload.format, payload.ndim) == (False, "B", 1)
        assert (payload.contiguous, payload.strides) == (True, (1,))
        assert payload.shape == (len(payload),)
        return self.do(step, payload)

    def do(self, step, payload):
        if step == "raise":
            raise RuntimeError("no more")
        if step == "close":
            self.stream.image.on_unavailable()
        elif step == "keep":
            self.kept.append((payload, bytes(payload)))
        elif step == "keep a part":
            self.kept.append((payload[1:], bytes(payload)[1:]))
        elif step == "keep an array":
            self.kept.append((np.frombuffer(payload, np.uint8).data, bytes(payload)))
        elif step == "refer weakly":
            self.kept.append((payload, bytes(payload)))
            self.reference = weakref.ref(payload)
        elif step == "release":
            payload.release()
        elif step == "poll":
            self.seen.append(("inner", self.poll(self.stream.image, self, 1)))
            # The inner poll does not change the payload of the outer one.
            self.seen.append(("outer", bytes(payload)))
        elif step == "write":
            self.stream.write(b"written by a handler")
        return ANSWERS.get(step)

    def outcome(self, limit):
        try:
            result = self.poll(self.stream.image, self, limit)
        except Exception as error:
            result = type(error), str(error)
        for view, content in self.kept:
            assert bytes(view) == content
        return result, self.seen, self.stream.image.position, self.stream.counted_position()


STEPS = (
    *("raise", "close", "keep", "keep a part", "keep an array", "refer weakly", "release"),
    *("poll", "write", *ANSWERS),
)
FRAMES = st.lists(st.tuples(st.binary(max_size=70), st.booleans()), max_size=12)
PLAIN = (Image.poll, lambda image, *given: image.bounded_poll(given[0], NO_LIMIT, *given[1:]))
CONTROLLED = (
    Image.controlled_poll,
    lambda image, *given: image.bounded_controlled_poll(given[0], NO_LIMIT, *given[1:]),
)


def native(name):
    return lambda image, *given: vars(image).get(name, lambda *_: 0)(*given)


def written(frames, begin):
    """A stream whose image has read `begin` messages of 32 bytes, with these frames after them."""
    with tempfile.TemporaryDirectory() as folder:
        stream = bound(OwnStream(Path(folder)))
    for _ in range(begin):
        stream.write(bytes(32))
    while stream.image.poll(lambda payload, header: None, 1_000):
        pass
    for payload, is_padding in frames:
        if is_padding:
            while stream.publication.append_padding(len(payload)) < 0:
                pass
        else:
            stream.write(payload)
    return stream


@settings(deadline=None, max_examples=150)
@given(
    FRAMES,
    st.lists(st.sampled_from(STEPS), max_size=12),
    st.integers(-1, 12),
    st.booleans(),
    st.data(),
)
def test_it_agrees_with_the_poll_in_python(frames, script, limit, is_controlled, data):
    begin = data.draw(st.sampled_from([0, 3, 1_015, 1_020, 1_022, 1_023]))
    name, (_, in_python) = ("controlled_poll", CONTROLLED) if is_controlled else ("poll", PLAIN)
    streams = [written(frames, begin) for _ in range(2)]
    found = Handler(streams[0], native(name), script)
    expected = Handler(streams[1], in_python, script)
    # The second poll begins where the first one ended, perhaps in the next term.
    for _ in range(2):
        assert found.outcome(limit) == expected.outcome(limit)


@pytest.mark.parametrize("is_controlled", [False, True], ids=["plain", "controlled"])
@pytest.mark.parametrize("step", STEPS)
def test_it_agrees_with_the_poll_in_python_after_each_step(step, is_controlled):
    name, (_, in_python) = ("controlled_poll", CONTROLLED) if is_controlled else ("poll", PLAIN)
    frames = [(b"first", False), (b"", True), (b"", False), (b"third", False)]
    streams = [written(frames, 3) for _ in range(2)]
    found = Handler(streams[0], native(name), [step, "none", step])
    expected = Handler(streams[1], in_python, [step, "none", step])
    for _ in range(2):
        assert found.outcome(10) == expected.outcome(10)


LENGTHS = [
    0, 1, 31, 32, 33, 64, 96, 4_096, TERM_LENGTH - ONE, TERM_LENGTH - ONE + 1, TERM_LENGTH,
    3 * TERM_LENGTH, (1 << 31) - 1, (1 << 31) - 32, -1, -64, -(1 << 31),
]  # fmt: skip


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", [0, 1, 2, 0xFFFF])
def test_a_bad_frame_blocks_or_ends_as_in_python(tmp_path, length, kind):
    outcomes = []
    for name, poll in (("native", native("poll")), ("twin", PLAIN[1])):
        (tmp_path / name).mkdir()
        stream = bound(OwnStream(tmp_path / name))
        stream.write(b"1", b"2", b"3")
        put_i32(stream.mapped.log, ONE, length)
        stream.mapped.log[ONE + 6 : ONE + 8].view(np.uint16)[0] = kind
        handler = Handler(stream, poll, [])
        outcomes.append([handler.outcome(100) for _ in range(2)])
    assert outcomes[0] == outcomes[1]


@kernel
def toggle(log, at, lengths, rounds):
    """Store these lengths in turn, without the GIL."""
    for number in range(rounds):
        put_i32(log, at, lengths[number % lengths.size])


def test_a_length_that_changes_during_the_poll_cannot_move_a_payload_out_of_its_term(stream):
    stream.write(*[bytes(32)] * 10)
    seen, log, state = [], stream.mapped.log, stream.image._state
    lengths = np.array([ONE, 1 << 30, TERM_LENGTH - ONE, -ONE, 3 * TERM_LENGTH], np.int64)
    toggle(log, ONE, lengths, 1)
    writer = threading.Thread(target=toggle, args=(log, ONE, lengths, 300_000_000))
    writer.start()
    while writer.is_alive():
        for _ in range(200):
            state.position = ONE
            stream.image.poll(lambda payload, header: seen.append(len(payload)), 1)
    assert {32} <= {*seen} <= {32, TERM_LENGTH - ONE - 32}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), {"handler": print}), ((print,), {"fragment_limit": 0}), ((print, 0.0), {}),
        ((print, np.int64(0)), {}), ((print, True), {}), ((print, None), {}), ((print, "1"), {}),
        ((), {}), ((print, 1, 2), {}), ((print,), {"other": 1}),
    ],
)  # fmt: skip
def test_other_arguments_are_passed_on_to_the_poll_in_python(stream, arguments, names):
    passed = []

    def fallback(*arguments, **names):
        passed.append((arguments, names))
        return "from Python"

    state = stream.image._state
    for poll, slot in (("poll", "fallback"), ("controlled_poll", "controlled_fallback")):
        in_python = getattr(state, slot)
        setattr(state, slot, fallback)
        assert getattr(stream.image, poll)(*arguments, **names) == "from Python"
        assert passed.pop() == (arguments, names)
        setattr(state, slot, in_python)


@pytest.mark.parametrize("limit", [1 << 63, 1 << 200, NO_LIMIT])
def test_a_limit_may_be_any_int(stream, limit):
    stream.write(b"1", b"2")
    assert stream.image.poll(lambda payload, header: None, -limit) == 0
    assert stream.image.poll(lambda payload, header: None, limit) == 2


def test_the_default_limit_is_ten(stream):
    stream.write(*[b"1"] * 25)
    polls = (stream.image.poll, stream.image.controlled_poll, stream.image.poll)
    assert [poll(lambda payload, header: None) for poll in polls] == [10, 10, 5]


def test_a_handler_that_is_not_callable_is_like_one_that_raises(stream):
    stream.write(b"1")
    assert stream.image.position == ONE
    with pytest.raises(TypeError, match="not callable"):
        stream.image.poll(7)
    assert stream.counted_position() == 2 * ONE
    assert stream.image.poll(7) == 0


def test_a_view_is_reused_only_without_other_references(stream):
    stream.write(*[b"%d" % number for number in range(6)])
    view_ids, kept = [], []

    def handler(payload, header):
        view_ids.append(id(payload))
        if len(view_ids) in (3, 4):
            kept.append(payload)

    stream.image.poll(handler)
    assert view_ids[0] == view_ids[1] == view_ids[2]
    assert len({*view_ids[2:5]}) == 3
    assert view_ids[4] == view_ids[5]
    assert [bytes(each) for each in kept] == [b"2", b"3"]


def test_views_are_new_if_their_layout_is_unknown(stream):
    stream.image._state.movable_flags = NEVER_MOVED
    stream.write(*[b"%d" % number for number in range(9)])
    seen = []
    assert stream.image.poll(lambda payload, header: seen.append(bytes(payload)), 9) == 9
    assert seen == [b"%d" % number for number in range(9)]


def test_a_view_keeps_the_log_mapped(stream):
    stream.write(b"kept")
    kept = []
    stream.image.poll(lambda payload, header: kept.append(payload))
    stream.image.on_unavailable()
    stream.publication.close()
    stream.mapped.close()
    gc.collect()
    assert bytes(kept[0]) == b"kept"


def test_the_log_stays_mapped_until_a_poll_ends(tmp_path):
    """The handler closes everything. The poll then still reads the state, and no memory."""
    stream = bound(OwnStream(tmp_path))
    stream.write(b"1", b"2")
    unmapped, seen = [], []
    weakref.finalize(stream.mapped.log.base.obj, unmapped.append, True)

    def handler(payload, header):
        stream.image.on_unavailable()
        stream.publication.close()
        stream.mapped.close()
        gc.collect()
        seen.append((bytes(payload), list(unmapped)))

    assert stream.image.poll(handler) == 1
    assert seen == [(b"1", [])]
    assert unmapped == [True]
    assert stream.image.poll(handler) == stream.image.controlled_poll(handler) == 0


def test_a_method_that_outlives_its_image_reads_nothing(stream):
    poll, controlled = stream.image.poll, stream.image.controlled_poll
    stream.write(b"1")
    stream.image.on_unavailable()
    handler = Handler(stream, None, [])
    assert (poll(handler), controlled(handler, 1), poll(handler, 1.0), handler.seen) == (
        0,
        0,
        0,
        [],
    )


def test_a_dropped_image_can_be_collected(tmp_path):
    stream = bound(OwnStream(tmp_path))
    dropped = weakref.ref(stream.image)
    del stream
    gc.collect()
    assert dropped() is None


def test_deep_recursion_is_an_error_and_no_crash(stream):
    stream.write(b"1")

    def handler(payload, header):
        stream.image.poll(handler)

    with pytest.raises(RecursionError):
        stream.image.poll(handler)
    assert stream.image.position == 2 * ONE


def test_no_reference_is_lost_or_kept(stream):
    made, image = [object() for _ in range(4)], stream.image

    def fails(payload, header):
        raise ValueError

    handlers = [lambda payload, header, each=each: each for each in made]
    handlers += [fails, lambda payload, header: Action.COMMIT, made.index]
    state = image._state
    seen = (*made, *handlers, state.header, state.whole, image, Action.COMMIT)
    before = [sys.getrefcount(each) for each in seen]
    stream.write(*[b"1"] * 7 * 20)
    for _ in range(10):
        for handler in handlers:
            for poll in (image.poll, image.controlled_poll):
                with contextlib.suppress(ValueError, TypeError):
                    poll(handler, 1)
    del handler, poll
    assert [sys.getrefcount(each) for each in seen] == before
    spare_references = sys.getrefcount(state.spare)
    assert spare_references == 2


def test_a_million_fragments_need_no_more_memory_than_one(stream):
    stream.write(*[bytes(32)] * 1_000)
    image, state, count = stream.image, stream.image._state, 0

    def handler(payload, header):
        return None

    image.poll(handler, 1_000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            for poll in (image.poll, image.controlled_poll):
                state.position = ONE
                count += poll(handler, 1_000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert count == 1_000_000
    assert grown < 10_000


def test_long_payloads_and_fragments(stream):
    stream.write(bytes(range(256)) * 20)
    seen = []
    assert stream.image.poll(
        lambda payload, header: seen.append((bytes(payload), header.flags))
    ) == len(seen)
    assert b"".join(payload for payload, _ in seen) == bytes(range(256)) * 20
    assert [len(payload) for payload, _ in seen[:-1]] == [MTU - 32] * (len(seen) - 1)
    assert [flags for _, flags in seen] == [0x80, *[0] * (len(seen) - 2), 0x40]
