"""Frames that an exercise writes and reads itself, in place of a driver.

    ScriptedPublisher   SETUP, data, heartbeats --> a driver that subscribes
    ScriptedReceiver    status messages, NAKs   --> a driver that publishes

Both send only what an exercise requests, so a peer can be as late, as wrong or as silent as the
exercise needs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.dissect.frames.frames import aligned
from windtunnel.harness.simulator.exercises.messages import message
from windtunnel.harness.simulator.world.host_socket import HostSocket

TERM = 65_536
MTU = 1_408
FIRST_TERM_ID = 7
"""Initial term id of scripted streams."""
FRAME = 1_024
"""Length of each frame of a scripted stream."""
UNFRAGMENTED = layout.FLAG_UNFRAGMENTED
END = UNFRAGMENTED | layout.FLAG_END_OF_STREAM


def frame(kind: layout.Frame, payload: bytes = b"", **values: int) -> bytes:
    """Return a frame of a type with these values of its fields, and zeros in the others."""
    buf = bytearray(kind.length) + payload
    for name, value in {"frame_length": len(buf), "type": kind.type_code, **values}.items():
        field = kind.field(name)
        buf[field.offset : field.end] = value.to_bytes(field.width, "little", signed=field.signed)
    return bytes(buf)


def value_of(datagram: bytes, kind: layout.Frame, name: str) -> int:
    """Return a field of the first frame in a datagram."""
    field = kind.field(name)
    return int.from_bytes(datagram[field.offset : field.end], "little", signed=field.signed)


def kind_of(datagram: bytes) -> int:
    """Return the type code of the first frame in a datagram."""
    return value_of(datagram, layout.DATA, "type")


def payload_at(position: int) -> bytes:
    """Return the payload of a scripted stream's frame at a position."""
    return message(position // FRAME, FRAME - layout.DATA_HEADER_LENGTH)


@dataclass(frozen=True)
class ScriptedPublisher:
    """A publisher of one session, from one socket to one address."""

    socket: HostSocket
    peer: SocketAddress
    stream_id: int
    session_id: int

    def setup(self, position: int = 0) -> None:
        """Send a SETUP for a stream that continues at a position."""
        self._send(
            frame(
                layout.SETUP,
                session_id=self.session_id,
                stream_id=self.stream_id,
                initial_term_id=FIRST_TERM_ID,
                active_term_id=FIRST_TERM_ID + position // TERM,
                term_offset=position % TERM,
                term_length=TERM,
                mtu=MTU,
            )
        )

    def data(self, position: int) -> None:
        """Send the frame at a position."""
        self._send(self._data(position, payload_at(position), flags=UNFRAGMENTED))

    def heartbeat(self, position: int, flags: int = UNFRAGMENTED) -> None:
        """Send a heartbeat at a position."""
        self._send(self._data(position, b"", frame_length=0, flags=flags))

    def feedback(self) -> list[bytes]:
        """Return the datagrams that receivers of the session have sent since the last call."""
        return [
            datagram
            for datagram, _ in received(self.socket)
            if value_of(datagram, layout.SM, "session_id") == self.session_id
        ]

    def _data(self, position: int, payload: bytes, **values: int) -> bytes:
        return frame(
            layout.DATA,
            payload,
            session_id=self.session_id,
            stream_id=self.stream_id,
            term_id=FIRST_TERM_ID + position // TERM,
            term_offset=position % TERM,
            **values,
        )

    def _send(self, datagram: bytes) -> None:
        self.socket.send(datagram, self.peer)


class ScriptedReceiver:
    """A receiver of the one stream that is sent to its socket. It keeps what it receives."""

    receiver_id = 0x5C819

    def __init__(self, socket: HostSocket) -> None:
        self._socket = socket
        self._source: SocketAddress | None = None
        self._setup = b""
        self.frames: list[bytes] = []
        """The frames that have been received, but for SETUPs."""
        self.setup_count = 0

    @property
    def end(self) -> int:
        """The end of the last data or padding frame that was received, as a position."""
        last = next((each for each in reversed(self.frames) if _is_data(each)), b"")
        if not last:
            return 0
        return self.position_of(last) + aligned(value_of(last, layout.DATA, "frame_length"))

    @property
    def is_at_end_of_stream(self) -> bool:
        """Whether the last frame says that the stream has ended."""
        flags = value_of(self.frames[-1], layout.DATA, "flags") if self.frames else 0
        return bool(flags & layout.FLAG_END_OF_STREAM)

    def setup_value(self, name: str) -> int:
        """Return a field of the last SETUP."""
        return value_of(self._setup, layout.SETUP, name)

    def poll(self) -> bool:
        """Receive what has arrived. Returns whether there has been a SETUP."""
        for datagram, source in received(self._socket):
            self._source = source
            if kind_of(datagram) == layout.SETUP.type_code:
                self._setup = datagram
                self.setup_count += 1
            else:
                self.frames += _split(datagram)
        return bool(self._setup)

    def forget(self) -> None:
        """Forget all frames and SETUPs so far."""
        self.frames.clear()
        self.setup_count = 0

    def position_of(self, datagram: bytes) -> int:
        """Return the position of a data or padding frame."""
        terms = value_of(datagram, layout.DATA, "term_id") - self.setup_value("initial_term_id")
        offset = value_of(datagram, layout.DATA, "term_offset")
        return terms * self.setup_value("term_length") + offset

    def status(self, position: int, window: int, flags: int = 0) -> None:
        """Send a status message that everything before a position has been consumed."""
        term_id, offset = self._place(position)
        self._send(
            layout.SM,
            flags=flags,
            consumption_term_id=term_id,
            consumption_term_offset=offset,
            receiver_window=window,
            receiver_id=self.receiver_id,
        )

    def nak(self, position: int, length: int) -> None:
        """Request a range again."""
        term_id, offset = self._place(position)
        self._send(layout.NAK, term_id=term_id, term_offset=offset, length=length)

    def response_setup(self, session_id: int) -> None:
        """Send the publisher the session id of its response stream."""
        self._send(layout.RSP_SETUP, response_session_id=session_id)

    def _place(self, position: int) -> tuple[int, int]:
        terms, offset = divmod(position, self.setup_value("term_length"))
        return self.setup_value("initial_term_id") + terms, offset

    def _send(self, kind: layout.Frame, **values: int) -> None:
        assert self._source is not None, "nothing has been received yet"
        ids = {name: self.setup_value(name) for name in ("session_id", "stream_id")}
        self._socket.send(frame(kind, b"", **ids, **values), self._source)


def received(socket: HostSocket) -> list[tuple[bytes, SocketAddress]]:
    """Return the datagrams that have arrived at a socket, and their sources."""
    found = []
    while (each := socket.receive()) is not None:
        found.append(each)
    return found


def _split(datagram: bytes) -> list[bytes]:
    """Return the frames of a datagram. Padding, of which only the header is sent, is the last."""
    found, at = [], 0
    while at < len(datagram):
        length = aligned(value_of(datagram[at:], layout.DATA, "frame_length"))
        is_last = length == 0 or kind_of(datagram[at:]) == layout.PAD.type_code
        end = len(datagram) if is_last else at + length
        found.append(datagram[at:end])
        at = end
    return found


def _is_data(datagram: bytes) -> bool:
    is_data = kind_of(datagram) in (layout.DATA.type_code, layout.PAD.type_code)
    return is_data and value_of(datagram, layout.DATA, "frame_length") > 0
