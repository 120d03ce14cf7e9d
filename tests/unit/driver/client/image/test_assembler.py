"""Fragments are reassembled; exactly the messages with a lost fragment are dropped."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import assembly as naive
from windtunnel.driver.client.image.assembler import (
    ControlledFragmentAssembler,
    FragmentAssembler,
    ImageControlledFragmentAssembler,
    ImageFragmentAssembler,
)
from windtunnel.driver.client.image.header import BEGIN, END, UNFRAGMENTED, Action, Header
from windtunnel.driver.logbuffer.position import MESSAGE_LENGTH_MAX

STREAM_ID, TERM_ID, DATA_TYPE = 1001, 7, 1


def header_of(flags, session_id, position, begin=0, reserved_value=0):
    row = (0, 0, DATA_TYPE, flags, reserved_value, session_id, STREAM_ID, TERM_ID, begin, position)
    return Header(None, row)


class Assembled:
    """An assembler, the messages it delivered, and the position of each stream."""

    def __init__(self, kind=FragmentAssembler, actions=()):
        self.messages, self.headers, self._at = [], [], {}
        self._actions = list(actions)
        self.assembler = kind(self._on_message)

    def _on_message(self, payload, header):
        self.messages.append(bytes(payload))
        self.headers.append(header)
        return self._actions.pop(0) if self._actions else None

    def give(self, payload, flags, session_id=1, *, is_lost=False, reserved_value=0):
        begin = self._at.get(session_id, 0)
        end = begin + (len(payload) + 32 + 31) // 32 * 32
        self._at[session_id] = end
        if is_lost:
            return None
        header = header_of(flags, session_id, end, begin, reserved_value)
        action = self.assembler(memoryview(payload), header)
        if action == Action.ABORT:
            self._at[session_id] = begin
        return action


def flags_of(index, count):
    return (BEGIN if index == 0 else 0) | (END if index == count - 1 else 0)


@pytest.mark.parametrize("kind", [FragmentAssembler, ControlledFragmentAssembler])
def test_an_unfragmented_message_is_passed_on_without_a_copy(kind):
    seen = []
    payload, header = memoryview(b"whole"), header_of(UNFRAGMENTED, 1, 64)
    kind(lambda *given: seen.append(given))(payload, header)
    assert seen[0][0] is payload
    assert seen[0][1] is header


@pytest.mark.parametrize(
    "kind",
    [
        FragmentAssembler,
        ControlledFragmentAssembler,
        ImageFragmentAssembler,
        ImageControlledFragmentAssembler,
    ],
)
def test_fragments_are_reassembled_and_the_header_describes_the_message(kind):
    assembled = Assembled(kind)
    assembled.give(b"before", UNFRAGMENTED)
    assembled.give(b"ab", BEGIN, reserved_value=5)
    assembled.give(b"cd", 0, reserved_value=6)
    assert assembled.messages == [b"before"]
    assembled.give(b"e", END, reserved_value=7)
    assert assembled.messages[1:] == [b"abcde"]
    whole = assembled.headers[1]
    assert (whole.flags, whole.term_offset, whole.reserved_value) == (UNFRAGMENTED, 64, 5)
    assert (whole.position, whole.session_id, whole.stream_id) == (4 * 64, 1, STREAM_ID)


def test_a_message_without_its_middle_is_dropped():
    assembled = Assembled()
    assembled.give(b"ab", BEGIN)
    assembled.give(b"cd", 0, is_lost=True)
    assembled.give(b"ef", 0)
    assembled.give(b"g", END)
    assembled.give(b"next", UNFRAGMENTED)
    assert assembled.messages == [b"next"]


def test_a_message_without_its_begin_is_dropped():
    assembled = Assembled()
    assembled.give(b"ab", BEGIN, is_lost=True)
    assembled.give(b"c", END)
    assembled.give(b"d", BEGIN)
    assembled.give(b"e", END)
    assert assembled.messages == [b"de"]


def test_a_message_without_its_end_is_replaced_by_the_next():
    assembled = Assembled()
    assembled.give(b"ab", BEGIN)
    assembled.give(b"c", END, is_lost=True)
    assembled.give(b"d", BEGIN)
    assembled.give(b"e", END)
    assert assembled.messages == [b"de"]


def test_the_end_of_another_message_does_not_complete_one():
    assembled = Assembled()
    assembled.give(b"ab", BEGIN)
    assembled.give(b"c", END, is_lost=True)
    assembled.give(b"d", BEGIN, is_lost=True)
    assembled.give(b"e", END)
    assert assembled.messages == []


def test_a_message_beyond_the_maximum_length_is_dropped():
    assembled = Assembled(partial(FragmentAssembler, length_max=100))
    for size, expected in ((50, [100]), (51, [100])):
        assembled.give(bytes(50), BEGIN)
        assembled.give(bytes(size), END)
        assert [len(message) for message in assembled.messages] == expected


@pytest.mark.parametrize("kind", [FragmentAssembler, ControlledFragmentAssembler])
def test_no_message_is_longer_than_any_stream_allows(kind):
    assembled = Assembled(kind)
    assembled.give(bytes(MESSAGE_LENGTH_MAX), BEGIN)
    assembled.give(b"x", END)
    assert assembled.messages == []


def test_sessions_do_not_mix():
    assembled = Assembled()
    assembled.give(b"a", BEGIN, session_id=1)
    assembled.give(b"x", BEGIN, session_id=2)
    assembled.give(b"b", END, session_id=1)
    assembled.give(b"y", END, session_id=2)
    assert assembled.messages == [b"ab", b"xy"]


@pytest.mark.parametrize("kind", [FragmentAssembler, ImageFragmentAssembler])
def test_the_partial_message_of_an_unavailable_session_is_freed(kind):
    assembled = Assembled(kind)
    assembled.give(b"a", BEGIN)
    assembled.assembler.free_session_buffer(1)
    assembled.assembler.free_session_buffer(2)
    assembled.give(b"b", END)
    assembled.give(b"c", BEGIN)
    assembled.assembler.clear()
    assembled.give(b"d", END)
    assert assembled.messages == []


def test_an_aborted_message_is_delivered_again_with_its_last_fragment():
    assembled = Assembled(ControlledFragmentAssembler, [Action.ABORT, Action.ABORT, Action.COMMIT])
    assert assembled.give(b"ab", BEGIN) == Action.CONTINUE
    assert assembled.give(b"cd", 0) == Action.CONTINUE
    actions = [assembled.give(b"ef", END) for _ in range(3)]
    assert actions == [Action.ABORT, Action.ABORT, Action.COMMIT]
    assert assembled.messages == [b"abcdef"] * 3
    assembled.give(b"gh", END)
    assert assembled.messages == [b"abcdef"] * 3


def test_a_handler_may_keep_the_view_of_an_aborted_message():
    kept = []

    def handler(payload, header):
        kept.append(payload)
        return Action.ABORT if len(kept) == 1 else Action.CONTINUE

    assembler = ControlledFragmentAssembler(handler)
    assembler(memoryview(b"ab"), header_of(BEGIN, 1, 64))
    for _ in range(2):
        assembler(memoryview(b"cd"), header_of(END, 1, 128, 64))
    assert [bytes(view) for view in kept] == [b"abcd", b"abcd"]


@given(
    st.lists(st.lists(st.binary(min_size=0, max_size=70), min_size=1, max_size=5), max_size=12),
    st.data(),
)
def test_exactly_the_complete_messages_are_delivered(messages, data):
    places = [(m, f) for m, fragments in enumerate(messages) for f in range(len(fragments))]
    lost = data.draw(st.sets(st.sampled_from(places)) if places else st.just(set()))
    plain, controlled = Assembled(), Assembled(ControlledFragmentAssembler)
    for number, index in places:
        fragments = messages[number]
        flags = flags_of(index, len(fragments))
        for assembled in (plain, controlled):
            assembled.give(fragments[index], flags, is_lost=(number, index) in lost)
    assert plain.messages == naive.whole_messages(messages, set(places) - lost)
    assert controlled.messages == plain.messages
