"""Fragments become messages; what lost a fragment is dropped whole and nothing else is."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from driver.client.assembler import FragmentAssembler
from driver.client.image import BEGIN, END, UNFRAGMENTED
from tests.naive import assembly as naive


class Assembled:
    """An assembler, what it handed out, and the position of each session's stream."""

    def __init__(self):
        self.messages, self.positions, self._at = [], [], {}
        self.assembler = FragmentAssembler(self._on_message)

    def _on_message(self, payload, header):
        self.messages.append(bytes(payload))
        self.positions.append(header.position)

    def give(self, payload, flags, session_id=1, *, is_lost=False):
        end = self._at.get(session_id, 0) + (len(payload) + 32 + 31) // 32 * 32
        self._at[session_id] = end
        if not is_lost:
            header = SimpleNamespace(flags=flags, session_id=session_id, position=end)
            self.assembler(memoryview(payload), header)
        return end


def flags_of(index, count):
    return (BEGIN if index == 0 else 0) | (END if index == count - 1 else 0)


def test_a_message_in_one_fragment_is_handed_on_without_a_copy():
    seen = []
    assembler = FragmentAssembler(lambda payload, header: seen.append(payload))
    payload = memoryview(b"whole")
    assembler(payload, SimpleNamespace(flags=UNFRAGMENTED, session_id=1, position=64))
    assert seen[0] is payload


def test_fragments_are_joined_and_the_last_header_is_handed_on():
    made = Assembled()
    made.give(b"ab", BEGIN)
    made.give(b"cd", 0)
    assert made.messages == []
    end = made.give(b"e", END)
    assert (made.messages, made.positions) == ([b"abcde"], [end])


def test_a_message_that_lost_its_middle_is_dropped_whole():
    made = Assembled()
    made.give(b"ab", BEGIN)
    made.give(b"cd", 0, is_lost=True)
    made.give(b"ef", 0)
    made.give(b"g", END)
    made.give(b"next", UNFRAGMENTED)
    assert made.messages == [b"next"]


def test_a_message_that_lost_its_begin_is_dropped_whole():
    made = Assembled()
    made.give(b"ab", BEGIN, is_lost=True)
    made.give(b"c", END)
    made.give(b"d", BEGIN)
    made.give(b"e", END)
    assert made.messages == [b"de"]


def test_a_message_that_lost_its_end_makes_room_for_the_next():
    made = Assembled()
    made.give(b"ab", BEGIN)
    made.give(b"c", END, is_lost=True)
    made.give(b"d", BEGIN)
    made.give(b"e", END)
    assert made.messages == [b"de"]


def test_the_end_of_another_message_does_not_complete_one():
    made = Assembled()
    made.give(b"ab", BEGIN)
    made.give(b"c", END, is_lost=True)
    made.give(b"d", BEGIN, is_lost=True)
    made.give(b"e", END)
    assert made.messages == []


def test_sessions_do_not_mix():
    made = Assembled()
    made.give(b"a", BEGIN, session_id=1)
    made.give(b"x", BEGIN, session_id=2)
    made.give(b"b", END, session_id=1)
    made.give(b"y", END, session_id=2)
    assert made.messages == [b"ab", b"xy"]


def test_what_a_gone_session_had_begun_is_forgotten():
    made = Assembled()
    made.give(b"a", BEGIN)
    made.assembler.forget(1)
    made.assembler.forget(2)
    made.give(b"b", END)
    assert made.messages == []


@given(
    st.lists(st.lists(st.binary(min_size=0, max_size=70), min_size=1, max_size=5), max_size=12),
    st.data(),
)
def test_exactly_the_messages_that_lost_nothing_come_out(messages, data):
    places = [(m, f) for m, fragments in enumerate(messages) for f in range(len(fragments))]
    lost = data.draw(st.sets(st.sampled_from(places)) if places else st.just(set()))
    made = Assembled()
    for number, index in places:
        fragments = messages[number]
        flags = flags_of(index, len(fragments))
        made.give(fragments[index], flags, is_lost=(number, index) in lost)
    assert made.messages == naive.whole_messages(messages, set(places) - lost)
