"""scapy layers for all Aeron frames, generated from the tables in `layout`.

    UDP / AeronData / AeronData / AeronPad          a batch: each DATA is followed by the next frame
    UDP / AeronStatusMessage                        any other frame fills its datagram

The layers are used to build and print frames, and as an independent parser in tests. Omitted
lengths are filled in. scapy dissects only a few thousand frames per second, so `pcap` reads the
captures.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from scapy.fields import (
    ConditionalField,
    Field,
    FlagsField,
    IP6Field,
    IPField,
    LEIntField,
    LELongField,
    LEShortEnumField,
    LEShortField,
    LESignedIntField,
    LESignedLongField,
    MultipleTypeField,
    PacketListField,
    SignedByteField,
    StrLenField,
    XByteField,
)
from scapy.layers.inet import UDP
from scapy.packet import NoPayload, Packet, Raw, bind_layers, split_layers

from windtunnel.harness.dissect.frames import layout

_FILLED_IN: Any = None
"""Default value of a length field. The actual length is computed when the frame is built."""

TYPE_NAMES = {frame.type_code: frame.name for frame in layout.FRAMES}
_FLAGS = {
    "DATA": ["", "", "", "", "REVOKED", "EOS", "END", "BEGIN"],
    "PAD": ["", "", "", "", "REVOKED", "EOS", "END", "BEGIN"],
    "SETUP": ["", "", "", "", "", "", "GROUP", "SEND_RESPONSE_SETUP"],
    "SM": ["", "", "", "", "", "", "EOS", "SEND_SETUP"],
    "RTTM": ["", "", "", "", "", "", "", "REPLY"],
    "ERR": ["", "", "", "HAS_GROUP_TAG", "", "", "", ""],
}
_BY_WIDTH: dict[tuple[int, bool], type[Any]] = {
    (1, True): SignedByteField,
    (1, False): XByteField,
    (2, False): LEShortField,
    (4, True): LESignedIntField,
    (4, False): LEIntField,
    (8, True): LESignedLongField,
    (8, False): LELongField,
}


def _field(field: layout.Field) -> Field[Any, Any]:
    made: Field[Any, Any] = _BY_WIDTH[field.width, field.signed](field.name, 0)
    return made


def _flags(name: str) -> Field[Any, Any]:
    names = [known or f"bit{bit}" for bit, known in enumerate(_FLAGS.get(name, [""] * 8))]
    default = layout.FLAG_UNFRAGMENTED if name in ("DATA", "PAD") else 0
    return FlagsField("flags", default, 8, names)


def _fields(frame: layout.Frame) -> list[Any]:
    """Return the scapy fields of a frame type in order of their offsets, including the fields of
    the generic header.
    """
    at = 0
    for field in (*layout.HEADER, *frame.fields):
        assert field.offset == at, f"{frame.name}.{field.name}: a gap in the table"
        at = field.end
    return [
        LESignedIntField("frame_length", _FILLED_IN),
        XByteField("version", 0),
        _flags(frame.name),
        LEShortEnumField("type", frame.type_code, TYPE_NAMES),
        *(_field(field) for field in frame.fields),
    ]


def _kind(raw: bytes) -> type[Packet]:
    """Return the scapy layer for a frame's bytes, or Raw if the type is unknown or there are too
    few bytes.
    """
    if len(raw) < layout.HEADER_LENGTH:
        return Raw
    frame_length = int.from_bytes(raw[:4], "little", signed=True)
    table = layout.BY_TYPE_CODE.get(int.from_bytes(raw[6:8], "little"))
    if table is None or len(raw) < table.length:
        return Raw
    if table is layout.DATA and frame_length == 0:
        return AeronHeartbeat
    return LAYERS[table.type_code]


class AeronFrame(Packet):
    """The scapy layer for any Aeron frame. It selects a specific layer by type code."""

    name = "Aeron"
    fields_desc: ClassVar[list[Any]] = []

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_: Any, **__: Any) -> type[Packet]:
        return cls if _pkt is None else _kind(bytes(_pkt))


class _Sized(Packet):
    """The base class of frames whose frame_length is filled in automatically."""

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.frame_length is None:
            pkt = len(pkt).to_bytes(4, "little") + pkt[4:]
        return pkt + pay

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Raw


class AeronData(Packet):
    """A DATA frame with its payload and alignment bytes. scapy represents the next frame of a batch
    as this layer's payload.
    """

    name = "Aeron DATA"
    fields_desc = [  # noqa: RUF012 - scapy reads the list of a class
        *_fields(layout.DATA),
        StrLenField("data", b"", length_from=lambda frame: _data_length(frame)),
        StrLenField("alignment", b"", length_from=lambda frame: -_data_length(frame) % 32),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.frame_length is None:
            length = layout.DATA_HEADER_LENGTH + len(self.data)
            pkt = length.to_bytes(4, "little") + pkt[4:]
        return pkt + bytes(-len(pkt) % layout.FRAME_ALIGNMENT) + pay

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _kind(payload)


class AeronPad(Packet):
    """A PAD frame. Only the header is sent, and frame_length is the padded length."""

    name = "Aeron PAD"
    fields_desc = _fields(layout.PAD)

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.frame_length is None:
            pkt = layout.DATA_HEADER_LENGTH.to_bytes(4, "little") + pkt[4:]
        return pkt + pay

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Raw


class AeronHeartbeat(Packet):
    """A heartbeat: a DATA header with frame_length 0 at the sender's position."""

    name = "Aeron heartbeat"
    fields_desc = _fields(layout.DATA)

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.frame_length is None:
            pkt = bytes(4) + pkt[4:]
        return pkt + pay

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Raw


class AeronSetup(_Sized):
    """A SETUP frame: the parameters that a receiver needs to create an image."""

    name = "Aeron SETUP"
    fields_desc = _fields(layout.SETUP)


class AeronStatusMessage(_Sized):
    """A status message (SM): a receiver's consumption position and window."""

    name = "Aeron SM"
    fields_desc = [  # noqa: RUF012 - scapy reads the list of a class
        *_fields(layout.SM),
        ConditionalField(
            LESignedLongField(layout.SM_GROUP_TAG.name, 0),
            lambda frame: frame.frame_length == layout.SM_GROUP_TAG.end,
        ),
    ]


class AeronNak(_Sized):
    """A NAK: a missing range in a term."""

    name = "Aeron NAK"
    fields_desc = _fields(layout.NAK)


class AeronRttMeasurement(_Sized):
    """An RTTM frame: a request to measure the round-trip time, or the reply to the request."""

    name = "Aeron RTTM"
    fields_desc = _fields(layout.RTTM)


class AeronError(_Sized):
    """An ERR frame, with which a receiver rejects an image."""

    name = "Aeron ERR"
    fields_desc = [  # noqa: RUF012 - scapy reads the list of a class
        *_fields(layout.ERR),
        StrLenField("text", b"", length_from=lambda frame: max(frame.error_length, 0)),
    ]


class AeronResponseSetup(_Sized):
    """An RSP_SETUP frame: the session id of a response stream."""

    name = "Aeron RSP_SETUP"
    fields_desc = _fields(layout.RSP_SETUP)


class AeronResolutionEntry(Packet):
    """An entry of a resolution frame, aligned to 8 bytes."""

    name = "Aeron resolution entry"
    fields_desc = [  # noqa: RUF012 - scapy reads the list of a class
        *(_field(field) for field in layout.RES_ENTRY),
        MultipleTypeField(
            [(IP6Field("address", "::"), lambda entry: entry.res_type == 2)],
            IPField("address", "0.0.0.0"),
        ),
        LEShortField("name_length", None),
        StrLenField("host", b"", length_from=lambda entry: entry.name_length),
        StrLenField("alignment", b"", length_from=lambda entry: _entry_padding(entry)),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.name_length is None:
            at = 8 + layout.RES_ADDRESS_LENGTH.get(self.res_type, 4)
            pkt = pkt[:at] + len(self.host).to_bytes(2, "little") + pkt[at + 2 :]
        return pkt + bytes(-len(pkt) % 8) + pay

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        return b"", s


class AeronResolution(_Sized):
    """A RES frame: the names that a driver can resolve."""

    name = "Aeron RES"
    fields_desc = [  # noqa: RUF012 - scapy reads the list of a class
        *_fields(layout.RES),
        PacketListField("entries", [], AeronResolutionEntry),
    ]


LAYERS: dict[int, type[Packet]] = {
    layout.PAD.type_code: AeronPad,
    layout.DATA.type_code: AeronData,
    layout.NAK.type_code: AeronNak,
    layout.SM.type_code: AeronStatusMessage,
    layout.ERR.type_code: AeronError,
    layout.SETUP.type_code: AeronSetup,
    layout.RTTM.type_code: AeronRttMeasurement,
    layout.RES.type_code: AeronResolution,
    layout.RSP_SETUP.type_code: AeronResponseSetup,
}


def bind_ports(ports: Iterable[int]) -> None:
    """Make scapy parse UDP datagrams to or from these ports as Aeron frames."""
    for port in ports:
        bind_layers(UDP, AeronFrame, dport=port)
        bind_layers(UDP, AeronFrame, sport=port)


def unbind_ports(ports: Iterable[int]) -> None:
    """Undo `bind_ports`: make scapy parse these ports as ordinary UDP again."""
    for port in ports:
        split_layers(UDP, AeronFrame, dport=port)
        split_layers(UDP, AeronFrame, sport=port)


def frames_in(datagram: bytes) -> list[Packet]:
    """Return the frames of a UDP payload in order. Any remaining bytes become a final Raw layer."""
    frames = []
    packet: Packet = AeronFrame(datagram)
    while packet and not isinstance(packet, NoPayload):
        frames.append(packet)
        packet = packet.payload
    return frames


def _data_length(frame: Packet) -> int:
    return max(int(frame.frame_length or 0) - layout.DATA_HEADER_LENGTH, 0)


def _entry_padding(entry: Packet) -> int:
    address_length = layout.RES_ADDRESS_LENGTH.get(entry.res_type, 4)
    return -(8 + address_length + 2 + int(entry.name_length)) % 8
