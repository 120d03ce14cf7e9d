"""Encoding and decoding of commands and responses: exact bytes, and one kind of error."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.command.client import ClientClose, ClientKeepalive, ClientTimeout
from windtunnel.driver.command.codec import (
    COMMANDS,
    RESPONSES,
    Command,
    Response,
    decode_command,
    decode_response,
)
from windtunnel.driver.command.command_type import CommandType, ErrorCode, ResponseType
from windtunnel.driver.command.counter import (
    AddCounter,
    AddStaticCounter,
    CounterReady,
    RemoveCounter,
    StaticCounter,
    UnavailableCounter,
)
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
    RemoveDestinationById,
    RemoveReceiveDestination,
)
from windtunnel.driver.command.driver import TerminateDriver
from windtunnel.driver.command.image import AvailableImage, RejectImage, UnavailableImage
from windtunnel.driver.command.payload import MalformedCommand, UnknownCommand
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    GetNextAvailableSessionId,
    NextAvailableSessionId,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess, PublicationError
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)

CLIENT = 0x1122334455667788
CORRELATION = -2
STREAM = -1001
CHANNEL = "aeron:ipc"
HEAD = struct.pack("<2q", CLIENT, CORRELATION)

COMMAND_BYTES: list[tuple[Command, int, bytes]] = [
    (
        AddPublication(CLIENT, CORRELATION, STREAM, CHANNEL),
        0x01,
        HEAD + struct.pack("<2i", STREAM, 9) + b"aeron:ipc",
    ),
    (
        RemovePublication(CLIENT, CORRELATION, 5, revoke=True),
        0x02,
        HEAD + struct.pack("<2q", 5, 1),
    ),
    (
        AddExclusivePublication(CLIENT, CORRELATION, STREAM, ""),
        0x03,
        HEAD + struct.pack("<2i", STREAM, 0),
    ),
    (
        AddSubscription(CLIENT, CORRELATION, STREAM, CHANNEL),
        0x04,
        HEAD + struct.pack("<q2i", -1, STREAM, 9) + b"aeron:ipc",
    ),
    (RemoveSubscription(CLIENT, CORRELATION, 5), 0x05, HEAD + struct.pack("<q", 5)),
    (ClientKeepalive(CLIENT, CORRELATION), 0x06, HEAD),
    (
        AddDestination(CLIENT, CORRELATION, 5, CHANNEL),
        0x07,
        HEAD + struct.pack("<qi", 5, 9) + b"aeron:ipc",
    ),
    (
        RemoveDestination(CLIENT, CORRELATION, 5, CHANNEL),
        0x08,
        HEAD + struct.pack("<qi", 5, 9) + b"aeron:ipc",
    ),
    (
        AddCounter(CLIENT, CORRELATION, 1001, b"keys!", "label"),
        0x09,
        HEAD + struct.pack("<2i", 1001, 5) + b"keys!\0\0\0" + b"\x05\0\0\0label",
    ),
    (RemoveCounter(CLIENT, CORRELATION, 5), 0x0A, HEAD + struct.pack("<q", 5)),
    (ClientClose(CLIENT), 0x0B, struct.pack("<2q", CLIENT, -1)),
    (
        AddReceiveDestination(CLIENT, CORRELATION, 5, CHANNEL),
        0x0C,
        HEAD + struct.pack("<qi", 5, 9) + b"aeron:ipc",
    ),
    (
        RemoveReceiveDestination(CLIENT, CORRELATION, 5, CHANNEL),
        0x0D,
        HEAD + struct.pack("<qi", 5, 9) + b"aeron:ipc",
    ),
    (TerminateDriver(CLIENT, CORRELATION, b"\xff\0"), 0x0E, HEAD + b"\x02\0\0\0\xff\0"),
    (
        AddStaticCounter(CLIENT, CORRELATION, 77, 1001, b"keys", ""),
        0x0F,
        HEAD + struct.pack("<q2i", 77, 1001, 4) + b"keys" + b"\0\0\0\0",
    ),
    (
        RejectImage(CLIENT, CORRELATION, 6, 4096, "no"),
        0x10,
        HEAD + struct.pack("<2qi", 6, 4096, 2) + b"no\0\0",
    ),
    (
        RemoveDestinationById(CLIENT, CORRELATION, 5, 6),
        0x11,
        HEAD + struct.pack("<2q", 5, 6),
    ),
    (
        GetNextAvailableSessionId(CLIENT, CORRELATION, STREAM),
        0x12,
        HEAD + struct.pack("<i", STREAM),
    ),
]

REJECTED_BY_RECEIVER = bytes.fromhex(
    "0200000000000000 ffffffffffffffff 4e000000 0a000000 efcdab8967452301 ffffffffffffffff"
    "0100 499f 7f000001 000000000000000000000000 0d000000 0a000000"
) + (b"not wanted")

RESPONSE_BYTES: list[tuple[Response, int, bytes]] = [
    (
        ErrorResponse(CORRELATION, ErrorCode.UNKNOWN_HOST, "who?"),
        0x0F01,
        struct.pack("<q2i", CORRELATION, 9, 4) + b"who?",
    ),
    (
        AvailableImage(6, -78, STREAM, 2, 61, "/dev/shm/x", "[::1]:40123"),
        0x0F02,
        struct.pack("<q2iq2i", 6, -78, STREAM, 2, 61, 10)
        + b"/dev/shm/x\0\0"
        + b"\x0b\0\0\0[::1]:40123",
    ),
    (
        PublicationReady(5, 4, -78, STREAM, 52, -1, "/a"),
        0x0F03,
        struct.pack("<2q5i", 5, 4, -78, STREAM, 52, -1, 2) + b"/a",
    ),
    (OperationSuccess(CORRELATION), 0x0F04, struct.pack("<q", CORRELATION)),
    (
        UnavailableImage(6, 2, STREAM, CHANNEL),
        0x0F05,
        struct.pack("<2q2i", 6, 2, STREAM, 9) + b"aeron:ipc",
    ),
    (
        ExclusivePublicationReady(4, 4, -78, STREAM, 52, 49, "/a"),
        0x0F06,
        struct.pack("<2q5i", 4, 4, -78, STREAM, 52, 49, 2) + b"/a",
    ),
    (SubscriptionReady(CORRELATION, 46), 0x0F07, struct.pack("<qi", CORRELATION, 46)),
    (CounterReady(1, 48), 0x0F08, struct.pack("<qi", 1, 48)),
    (UnavailableCounter(1, 48), 0x0F09, struct.pack("<qi", 1, 48)),
    (ClientTimeout(CLIENT), 0x0F0A, struct.pack("<q", CLIENT)),
    (StaticCounter(1, 48), 0x0F0B, struct.pack("<qi", 1, 48)),
    (
        PublicationError(
            registration_id=2,
            destination_registration_id=-1,
            session_id=78,
            stream_id=10,
            receiver_id=0x0123456789ABCDEF,
            group_tag=-1,
            source_address="127.0.0.1",
            source_port=40_777,
            error_code=ErrorCode.IMAGE_REJECTED,
            message="not wanted",
        ),
        0x0F0C,
        REJECTED_BY_RECEIVER,
    ),
    (NextAvailableSessionId(CORRELATION, -5), 0x0F0D, struct.pack("<qi", CORRELATION, -5)),
]


def kind_of(case: object) -> str:
    return type(case).__name__ if not isinstance(case, (int, bytes)) else ""


def test_every_type_has_example_bytes() -> None:
    assert {type_id for _, type_id, _ in COMMAND_BYTES} == set(CommandType) == set(COMMANDS)
    assert {type_id for _, type_id, _ in RESPONSE_BYTES} == set(ResponseType) == set(RESPONSES)


@pytest.mark.parametrize(("command", "type_id", "content"), COMMAND_BYTES, ids=kind_of)
def test_a_command_has_exactly_these_bytes(command: Command, type_id: int, content: bytes) -> None:
    assert type_id == command.TYPE_ID
    assert command.encode() == content
    assert decode_command(type_id, content) == command


@pytest.mark.parametrize(("response", "type_id", "content"), RESPONSE_BYTES, ids=kind_of)
def test_a_response_has_exactly_these_bytes(
    response: Response, type_id: int, content: bytes
) -> None:
    assert type_id == response.TYPE_ID
    assert response.encode() == content
    assert decode_response(type_id, content) == response


@pytest.mark.parametrize(("command", "type_id", "content"), COMMAND_BYTES, ids=kind_of)
def test_a_command_cut_anywhere_is_malformed(
    command: Command, type_id: int, content: bytes
) -> None:
    if isinstance(command, RejectImage):
        content = content[:-2]
    legacy = 24 if isinstance(command, RemovePublication) else len(content)
    for length in range(len(content)):
        if length >= legacy:
            decode_command(type_id, content[:length])
        else:
            with pytest.raises(MalformedCommand, match=r"expected .*, found"):
                decode_command(type_id, content[:length])


@pytest.mark.parametrize(("response", "type_id", "content"), RESPONSE_BYTES, ids=kind_of)
def test_a_response_cut_anywhere_is_malformed(
    response: Response, type_id: int, content: bytes
) -> None:
    for length in range(len(content)):
        with pytest.raises(MalformedCommand, match=r"expected .*, found"):
            decode_response(type_id, content[:length])


@pytest.mark.parametrize(("command", "type_id", "content"), COMMAND_BYTES, ids=kind_of)
def test_extra_bytes_after_a_command_are_ignored(
    command: Command, type_id: int, content: bytes
) -> None:
    """Java claims 4 bytes too many for a counter."""
    assert decode_command(type_id, content + b"\xff\xff\xff\xff") == command


def test_an_old_client_removes_a_publication_without_flags() -> None:
    content = HEAD + struct.pack("<q", 5)
    assert decode_command(0x02, content) == RemovePublication(CLIENT, CORRELATION, 5)
    assert RemovePublication(CLIENT, CORRELATION, 5).encode() == content + bytes(8)


@pytest.mark.parametrize(("reason", "length"), [("", 40), ("1234", 40), ("12345", 41)])
def test_a_short_reason_is_padded_to_what_the_c_driver_takes(reason: str, length: int) -> None:
    content = RejectImage(1, 2, 3, 4, reason).encode()
    assert len(content) == length
    assert decode_command(0x10, content) == RejectImage(1, 2, 3, 4, reason)


@pytest.mark.parametrize("length", [-1, 10, 2**31 - 1, -(2**31)])
def test_a_channel_longer_than_its_message_is_malformed(length: int) -> None:
    content = HEAD + struct.pack("<2i", STREAM, length) + b"aeron:ipc"
    with pytest.raises(
        MalformedCommand, match=rf"channel_length at offset 20: expected 0 to 9, found {length}"
    ):
        decode_command(0x01, content)


def test_a_label_beyond_its_key_is_malformed() -> None:
    content = HEAD + struct.pack("<2i", 1001, 5) + b"keys!\0\0\0" + b"\x06\0\0\0label"
    with pytest.raises(
        MalformedCommand, match="label_length at offset 32: expected 0 to 5, found 6"
    ):
        decode_command(0x09, content)


@pytest.mark.parametrize("name", [b"", b"/a\0b"])
def test_a_log_file_needs_a_name(name: bytes) -> None:
    content = struct.pack("<2q5i", 5, 4, -78, STREAM, 52, -1, len(name)) + name
    with pytest.raises(MalformedCommand, match="a file name in log_file_name"):
        decode_response(0x0F03, content)


@pytest.mark.parametrize("address_type", [0, 3, -1])
def test_an_address_is_ipv4_or_ipv6(address_type: int) -> None:
    content = bytearray(REJECTED_BY_RECEIVER)
    struct.pack_into("<h", content, 40, address_type)
    with pytest.raises(MalformedCommand, match=f"address_type 1 or 2, found {address_type}"):
        decode_response(0x0F0C, bytes(content))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "2001:db8::5"])
def test_a_publication_error_carries_either_kind_of_address(address: str) -> None:
    error = PublicationError(1, 2, 3, 4, 5, 6, address, 65_535, 13, "é")
    assert decode_response(0x0F0C, error.encode()) == error


def test_invalid_text_is_replaced() -> None:
    content = struct.pack("<q2i", 1, 11, 3) + b"a\xffb"
    assert decode_response(0x0F01, content) == ErrorResponse(1, 11, "a\ufffdb")


@pytest.mark.parametrize("type_id", [0, -1, 0x13, 0xF01, 2**31 - 1])
def test_an_unknown_command_is_named(type_id: int) -> None:
    with pytest.raises(UnknownCommand, match=f"found {type_id}") as caught:
        decode_command(type_id, HEAD)
    assert caught.value.error_code == ErrorCode.UNKNOWN_COMMAND_TYPE_ID


@pytest.mark.parametrize("type_id", [0, 0x01, 0xF00, 0xF0E])
def test_an_unknown_response_is_named(type_id: int) -> None:
    with pytest.raises(UnknownCommand, match=f"found {type_id}"):
        decode_response(type_id, HEAD)


def test_a_malformed_command_carries_its_error_code() -> None:
    with pytest.raises(MalformedCommand) as caught:
        decode_command(0x01, b"")
    assert caught.value.error_code == ErrorCode.MALFORMED_COMMAND


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_reads_any_kind_of_bytes(kind: type) -> None:
    content = COMMAND_BYTES[0][2]
    assert decode_command(0x01, kind(content)) == COMMAND_BYTES[0][0]
    assert decode_command(0x01, np.frombuffer(content, dtype=np.uint8)) == COMMAND_BYTES[0][0]


def test_no_message_class_is_a_subclass_of_another() -> None:
    """A `match` or `isinstance` must never confuse two messages."""
    for kinds in (COMMANDS, RESPONSES):
        for one in kinds.values():
            assert [other for other in kinds.values() if issubclass(one, other)] == [one]


@pytest.mark.parametrize(("code", "expected"), [(9, ErrorCode.UNKNOWN_HOST), (15, -1), (-7, -1)])
def test_an_error_code_of_a_newer_driver_is_unknown(code: int, expected: int) -> None:
    assert ErrorCode.of(code) == expected


@given(type_id=st.sampled_from(sorted(COMMANDS)), content=st.binary(max_size=80))
def test_any_bytes_are_a_command_or_malformed(type_id: int, content: bytes) -> None:
    try:
        command = decode_command(type_id, content)
    except MalformedCommand:
        return
    assert decode_command(type_id, command.encode()) == command


@given(type_id=st.sampled_from(sorted(RESPONSES)), content=st.binary(max_size=120))
def test_any_bytes_are_a_response_or_malformed(type_id: int, content: bytes) -> None:
    try:
        response = decode_response(type_id, content)
    except MalformedCommand:
        return
    assert decode_response(type_id, response.encode()) == response


@given(
    kind=st.sampled_from([AddPublication, AddExclusivePublication]),
    stream_id=st.integers(-(2**31), 2**31 - 1),
    channel=st.text(max_size=50),
    ids=st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2),
)
def test_what_is_encoded_is_decoded(
    kind: type[AddPublication], stream_id: int, channel: str, ids: tuple[int, int]
) -> None:
    command = kind(*ids, stream_id, channel)
    assert decode_command(kind.TYPE_ID, command.encode()) == command
