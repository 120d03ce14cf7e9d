"""Fragments back to messages, for handlers that want whole ones.

A message that came in one fragment is handed on as it lies in the log, without a copy. Fragments of
several sessions may be interleaved; each session has a message of its own in the making. A message
whose beginning or middle was lost (an unreliable stream) is dropped as a whole.
"""

from driver.client.image import BEGIN, END, UNFRAGMENTED, FragmentHandler, Header


class FragmentAssembler:
    """Called like a fragment handler, calls the given one with whole messages."""

    def __init__(self, handler: FragmentHandler) -> None:
        self._handler = handler
        self._parts: dict[int, bytearray] = {}
        self._next_positions: dict[int, int] = {}

    def __call__(self, payload: memoryview, header: Header) -> None:
        flags = header.flags
        if flags & UNFRAGMENTED == UNFRAGMENTED:
            self._handler(payload, header)
            return
        session_id, end = header.session_id, header.position
        if flags & BEGIN:
            self._parts[session_id] = bytearray(payload)
            self._next_positions[session_id] = end
            return
        part = self._parts.get(session_id)
        if part is None:
            return
        begin = end - (len(payload) + 32 + 31) // 32 * 32
        if begin != self._next_positions[session_id]:
            del self._parts[session_id]
            return
        part += payload
        self._next_positions[session_id] = end
        if flags & END:
            del self._parts[session_id]
            self._handler(memoryview(part), header)

    def forget(self, session_id: int) -> None:
        """Drop what a session that is gone had begun."""
        self._parts.pop(session_id, None)
        self._next_positions.pop(session_id, None)
