"""Fragments back to messages, for handlers that want whole ones.

    handler    one session only        any session
    plain      ImageFragmentAssembler            FragmentAssembler
    controlled ImageControlledFragmentAssembler  ControlledFragmentAssembler

An assembler is called like a fragment handler and calls the given one with whole messages. A
message that came in one fragment is handed on as it lies in the log, without a copy. Fragments of
several sessions may be interleaved; each session has a message of its own in the making. A message
whose beginning or middle was lost (an unreliable stream) is dropped as a whole, and so is one that
grows beyond what any stream can carry.
"""

from typing import ClassVar

from windtunnel.driver.client.image.fragment_reader import ControlledHandler, FragmentHandler
from windtunnel.driver.client.image.header import BEGIN, END, UNFRAGMENTED, Action, Header
from windtunnel.driver.logbuffer.position import MESSAGE_LENGTH_MAX
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH


class _Message:
    """One session's message in the making."""

    __slots__ = ("_before", "_first", "_next_position", "_part")

    def __init__(self) -> None:
        self._part = bytearray()
        self._first: Header | None = None
        self._next_position = 0
        self._before = (0, 0)
        """Length and next position before the last fragment."""

    def add(self, payload: memoryview, header: Header) -> bool:
        """Take a fragment. Returns whether it was the last of a message."""
        if header.flags & BEGIN:
            self._part, self._first = bytearray(payload), header.copied()
            self._next_position = header.position
            return False
        if self._first is None:
            return False
        occupied = (len(payload) + HEADER_LENGTH + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        is_next = header.position - occupied == self._next_position
        if not is_next or len(self._part) + len(payload) > MESSAGE_LENGTH_MAX:
            self.forget()
            return False
        self._before = (len(self._part), self._next_position)
        self._part += payload
        self._next_position = header.position
        return bool(header.flags & END)

    def whole(self, header: Header) -> tuple[memoryview, Header]:
        """The message, as its handler is given it."""
        assert self._first is not None
        return memoryview(self._part), header.completed(self._first)

    def take_back(self) -> None:
        """Be again as before the last fragment, which will come a second time."""
        length, self._next_position = self._before
        # A copy: the handler may still hold a view of the whole, and then it cannot be cut.
        self._part = bytearray(memoryview(self._part)[:length])

    def forget(self) -> None:
        """Begin anew."""
        self._part, self._first = bytearray(), None


class _Sessions:
    """A message in the making for each session that has begun one."""

    IS_FOR_ONE: ClassVar[bool] = False

    def __init__(self) -> None:
        self._messages: dict[int, _Message] = {}

    def _message_of(self, header: Header) -> _Message:
        key = 0 if self.IS_FOR_ONE else header.session_id
        message = self._messages.get(key)
        if message is None:
            message = self._messages[key] = _Message()
        return message

    def forget(self, session_id: int) -> None:
        """Drop what a session that is gone had begun."""
        self._messages.pop(0 if self.IS_FOR_ONE else session_id, None)

    def clear(self) -> None:
        """Drop what all sessions had begun."""
        self._messages.clear()


class FragmentAssembler(_Sessions):
    """Called like a fragment handler, calls the given one with whole messages."""

    def __init__(self, handler: FragmentHandler) -> None:
        super().__init__()
        self._handler = handler

    def __call__(self, payload: memoryview, header: Header) -> None:
        if header.flags & UNFRAGMENTED == UNFRAGMENTED:
            self._handler(payload, header)
            return
        message = self._message_of(header)
        if message.add(payload, header):
            made = message.whole(header)
            message.forget()
            self._handler(*made)


class ImageFragmentAssembler(FragmentAssembler):
    """A FragmentAssembler for the fragments of one image only."""

    IS_FOR_ONE = True


class ControlledFragmentAssembler(_Sessions):
    """Called like a controlled handler, calls the given one with whole messages.

    A message that was answered with ABORT is handed over again when its last fragment comes again.
    """

    def __init__(self, handler: ControlledHandler) -> None:
        super().__init__()
        self._handler = handler

    def __call__(self, payload: memoryview, header: Header) -> Action | None:
        if header.flags & UNFRAGMENTED == UNFRAGMENTED:
            return self._handler(payload, header)
        message = self._message_of(header)
        if not message.add(payload, header):
            return Action.CONTINUE
        action = self._handler(*message.whole(header))
        if action == Action.ABORT:
            message.take_back()
        else:
            message.forget()
        return action


class ImageControlledFragmentAssembler(ControlledFragmentAssembler):
    """A ControlledFragmentAssembler for the fragments of one image only."""

    IS_FOR_ONE = True
