"""Fragment handlers that reassemble fragmented messages and pass them to other handlers.

    handler    one session only        any session
    plain      ImageFragmentAssembler            FragmentAssembler
    controlled ImageControlledFragmentAssembler  ControlledFragmentAssembler

Pass an assembler to a poll instead of the handler. The assembler calls the handler with whole
messages. It does not copy an unfragmented message. Fragments of several sessions may be
interleaved, because each session has a separate buffer. A message whose first or middle fragments
were lost (unreliable stream) is dropped, as is a message longer than any stream allows, or than the
user of a FragmentAssembler expects.
"""

from typing import ClassVar

from windtunnel.driver.client.image.fragment_handlers import ControlledHandler, FragmentHandler
from windtunnel.driver.client.image.header import BEGIN, END, UNFRAGMENTED, Action, Header
from windtunnel.driver.logbuffer.position import MESSAGE_LENGTH_MAX
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH


class _MessageBuffer:
    """The partially reassembled message of a session."""

    __slots__ = ("_first", "_length_max", "_next_position", "_part", "_previous")

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._part = bytearray()
        self._first: Header | None = None
        self._next_position = 0
        self._previous = (0, 0)
        """The message length and the expected position as they were before the last fragment was
        added."""

    def add(self, payload: memoryview, header: Header) -> bool:
        """Append a fragment to the message. Returns whether the message is complete."""
        if header.flags & BEGIN:
            self._part, self._first = bytearray(payload), header.copied()
            self._next_position = header.position
            return False
        if self._first is None:
            return False
        occupied = (len(payload) + HEADER_LENGTH + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        is_next = header.position - occupied == self._next_position
        if not is_next or len(self._part) + len(payload) > self._length_max:
            self.reset()
            return False
        self._previous = (len(self._part), self._next_position)
        self._part += payload
        self._next_position = header.position
        return bool(header.flags & END)

    def assembled(self, header: Header) -> tuple[memoryview, Header]:
        """Return the payload and the header of the completed message."""
        assert self._first is not None
        return memoryview(self._part), header.completed(self._first)

    def undo_last(self) -> None:
        """Remove the last fragment from the message, because that fragment will be
        delivered again.
        """
        length, self._next_position = self._previous
        # Copy, because a bytearray cannot shrink while the handler holds a view of it.
        self._part = bytearray(memoryview(self._part)[:length])

    def reset(self) -> None:
        """Discard all fragments of the message."""
        self._part, self._first = bytearray(), None


class _SessionBuffers:
    """An assembler's buffers for partially reassembled messages, one for each session."""

    IS_SINGLE_SESSION: ClassVar[bool] = False

    def __init__(self, length_max: int = MESSAGE_LENGTH_MAX) -> None:
        self._length_max = length_max
        self._messages: dict[int, _MessageBuffer] = {}

    def _message_of(self, header: Header) -> _MessageBuffer:
        key = 0 if self.IS_SINGLE_SESSION else header.session_id
        message = self._messages.get(key)
        if message is None:
            message = self._messages[key] = _MessageBuffer(self._length_max)
        return message

    def free_session_buffer(self, session_id: int) -> None:
        """Discard the partial message of a session whose image became unavailable."""
        self._messages.pop(0 if self.IS_SINGLE_SESSION else session_id, None)

    def clear(self) -> None:
        """Discard the partial messages of all sessions."""
        self._messages.clear()


class FragmentAssembler(_SessionBuffers):
    """A fragment handler that reassembles messages and passes each whole message to another
    handler.
    """

    def __init__(self, handler: FragmentHandler, length_max: int = MESSAGE_LENGTH_MAX) -> None:
        """Create an assembler that drops fragmented messages of more than `length_max` bytes."""
        super().__init__(length_max)
        self._handler = handler

    def __call__(self, payload: memoryview, header: Header) -> None:
        if header.flags & UNFRAGMENTED == UNFRAGMENTED:
            self._handler(payload, header)
            return
        message = self._message_of(header)
        if message.add(payload, header):
            assembled = message.assembled(header)
            message.reset()
            self._handler(*assembled)


class ImageFragmentAssembler(FragmentAssembler):
    """A FragmentAssembler for the fragments of a single image."""

    IS_SINGLE_SESSION = True


class ControlledFragmentAssembler(_SessionBuffers):
    """A controlled fragment handler that reassembles messages and passes each whole message to
    another controlled handler.

    After ABORT, the message is delivered again together with its last fragment.
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
        action = self._handler(*message.assembled(header))
        if action == Action.ABORT:
            message.undo_last()
        else:
            message.reset()
        return action


class ImageControlledFragmentAssembler(ControlledFragmentAssembler):
    """A ControlledFragmentAssembler for the fragments of a single image."""

    IS_SINGLE_SESSION = True
