"""Encoding and decoding any message, messages of other versions, and invalid bytes."""

import random
import struct
from dataclasses import asdict, replace

import pytest
from hypothesis import given

from tests.unit.driver.archive.protocol.any_message import ANY_MESSAGE, KINDS
from windtunnel.driver.archive.protocol.codec import (
    HEADER,
    MalformedMessage,
    UnencodableMessage,
    UnknownTemplate,
    decode,
    encode,
)
from windtunnel.driver.archive.protocol.codes import (
    SCHEMA_VERSION,
    BooleanType,
    SourceLocation,
)
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.replication import ReplicateRequest2
from windtunnel.driver.archive.protocol.requests import (
    AuthConnectRequest,
    ChallengeResponse,
    CloseSessionRequest,
    ListRecordingRequest,
    ReplayRequest,
    StartRecordingRequest,
    StartRecordingRequest2,
    UpdateChannelRequest,
)
from windtunnel.driver.archive.protocol.responses import ControlResponse

FUZZ_SEEDS = 20_000
REPLAY = ReplayRequest(
    control_session_id=1, correlation_id=2, recording_id=3, position=64, length=-1,
    replay_stream_id=11, file_io_max_length=4096, replay_token=5, replay_channel="aeron:ipc",
)  # fmt: skip
ALL_STRINGS = ReplicateRequest2(
    control_session_id=1, correlation_id=2, src_recording_id=3, dst_recording_id=-1,
    stop_position=-1, channel_tag_id=-1, subscription_tag_id=-1, src_control_stream_id=10,
    src_control_channel="source", live_destination="live", replication_channel="through",
    encoded_credentials=b"\xff\x00", src_response_channel="back",
)  # fmt: skip


def as_version(message, version):
    """Return the bytes that a sender of another version would have written."""
    layout = message.LAYOUT
    fixed = [field for field in layout.fixed if field.since <= version]
    block = struct.pack(
        "<" + "".join(field.code for field in fixed),
        *(getattr(message, field.name) for field in fixed),
    )
    content = HEADER.pack(len(block), message.TEMPLATE_ID, 101, version) + block
    for field in layout.variable:
        if field.since <= version:
            value = getattr(message, field.name)
            value = value.encode() if isinstance(value, str) else value
            content += struct.pack("<I", len(value)) + value
    return content


@pytest.mark.parametrize("length", [1 << 63, -(1 << 63) - 1, 0.5])
def test_a_number_too_large_for_its_field_is_rejected(length):
    with pytest.raises(UnencodableMessage, match=rf"ReplayRequest\.length: .*{length}"):
        encode(replace(REPLAY, length=length))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (replace(REPLAY, replay_channel=None), "replay_channel: expected str, found None"),
        (replace(REPLAY, replay_channel=b"aeron:ipc"), "replay_channel: expected str, found b'aer"),
        (
            ChallengeResponse(control_session_id=1, correlation_id=2, encoded_credentials=5),
            "encoded_credentials: expected bytes, fo",
        ),
    ],
)
def test_a_text_or_bytes_of_a_wrong_type_are_rejected(message, text):
    with pytest.raises(UnencodableMessage, match=text):
        encode(message)


@pytest.mark.parametrize("location", [7, -1])
def test_a_value_that_an_enumeration_does_not_have_is_rejected(location):
    request = StartRecordingRequest2(
        control_session_id=1, correlation_id=2, stream_id=3, source_location=location,
        auto_stop=BooleanType.FALSE, channel="aeron:ipc",
    )  # fmt: skip
    text = rf"StartRecordingRequest2\.source_location: expected a SourceLocation, found {location}"
    with pytest.raises(UnencodableMessage, match=text):
        encode(request)
    assert encode(replace(request, source_location=1)) == encode(
        replace(request, source_location=SourceLocation.REMOTE)
    )


def test_bytes_may_be_a_bytearray():
    message = ChallengeResponse(
        control_session_id=1, correlation_id=2, encoded_credentials=bytearray(b"abc")
    )
    assert decode(encode(message)) == replace(message, encoded_credentials=b"abc")


@given(ANY_MESSAGE)
def test_any_message_is_decoded_as_it_was_encoded(message):
    assert decode(encode(message)) == message


@given(ANY_MESSAGE)
def test_a_message_truncated_anywhere_is_rejected(message):
    content = encode(message)
    for length in range(len(content)):
        with pytest.raises(MalformedMessage):
            decode(content[:length])


@given(ANY_MESSAGE)
def test_fields_of_newer_versions_are_skipped(message):
    content = encode(message)
    block_length, template_id, schema_id, _ = HEADER.unpack_from(content)
    end = HEADER.size + block_length
    longer = HEADER.pack(block_length + 12, template_id, schema_id, SCHEMA_VERSION + 1)
    newer = longer + content[HEADER.size : end] + bytes(12) + content[end:] + b"\x03\0\0\0new"
    assert decode(newer) == message


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_version_of_a_message_is_decoded(kind):
    fixed = {
        field.name: next(iter(field.enumeration)) if field.enumeration else 100 + number
        for number, field in enumerate(kind.LAYOUT.fixed)
    }
    behind = {f.name: f.name if f.is_text else f.name.encode() for f in kind.LAYOUT.variable}
    message = kind(**fixed, **behind)
    since = {field.name: field.since for field in (*kind.LAYOUT.fixed, *kind.LAYOUT.variable)}
    for version in range(SCHEMA_VERSION + 1):
        expected = asdict(message) | {
            name: absent for name, absent in kind.LAYOUT.absent.items() if since[name] > version
        }
        assert asdict(decode(as_version(message, version))) == expected


def test_absent_fields_have_the_default_values_of_the_protocol():
    old = decode(as_version(REPLAY, 6))
    assert (old.file_io_max_length, old.replay_token) == (-1, -1)
    assert decode(as_version(REPLAY, 7)).file_io_max_length == 4096
    older = decode(as_version(ALL_STRINGS, 7))
    assert older.replication_session_id == -1
    assert (older.encoded_credentials, older.src_response_channel) == (b"", "")
    response = ControlResponse(
        control_session_id=1, correlation_id=2, relevant_id=3, code=0, version=9, error_message=""
    )
    assert decode(as_version(response, 3)).version == 0


def test_fields_after_the_end_of_a_shorter_block_are_absent():
    content = bytearray(as_version(REPLAY, 6))
    struct.pack_into("<H", content, 6, SCHEMA_VERSION)
    assert decode(content).replay_token == -1


def test_bytes_after_the_block_of_an_older_version_are_ignored():
    content = bytearray(encode(REPLAY))
    struct.pack_into("<H", content, 6, 9)
    decoded = decode(content)
    assert (decoded.file_io_max_length, decoded.replay_token) == (4096, -1)


def test_a_block_length_beyond_the_message_is_rejected():
    content = bytearray(encode(CloseSessionRequest(control_session_id=7)))
    struct.pack_into("<H", content, 0, 9)
    with pytest.raises(MalformedMessage, match="expected a block of 9 bytes, found 8"):
        decode(content)


def test_a_field_of_every_version_is_required():
    content = encode(ListRecordingRequest(control_session_id=1, correlation_id=2, recording_id=3))
    short = HEADER.pack(16, 10, 101, SCHEMA_VERSION) + content[8:24]
    with pytest.raises(
        MalformedMessage, match=r"ListRecordingRequest: .* at least 24 bytes, found 16"
    ):
        decode(short)


@pytest.mark.parametrize("schema_id", [0, 100, 102])
def test_another_schema_id_is_rejected(schema_id):
    with pytest.raises(MalformedMessage, match=f"expected schema 101, found {schema_id}"):
        decode(HEADER.pack(8, 3, schema_id, SCHEMA_VERSION) + bytes(8))


@pytest.mark.parametrize("template_id", [0, 2, 20, 21, 100, 108, 65535])
def test_an_unknown_template_id_has_its_own_error(template_id):
    with pytest.raises(UnknownTemplate):
        decode(HEADER.pack(8, template_id, 101, SCHEMA_VERSION) + bytes(8))


def test_an_unknown_enumeration_value_is_rejected_but_null_is_not():
    start = StartRecordingRequest(
        control_session_id=1, correlation_id=2, stream_id=3,
        source_location=SourceLocation.NULL, channel="aeron:ipc",
    )  # fmt: skip
    content = bytearray(encode(start))
    assert decode(content) == start
    struct.pack_into("<i", content, HEADER.size + 20, 2)
    with pytest.raises(
        MalformedMessage, match="source_location: expected a SourceLocation, found 2"
    ):
        decode(content)


@pytest.mark.parametrize("length", [10, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_text_length_beyond_the_message_is_rejected(length):
    update = UpdateChannelRequest(
        control_session_id=1, correlation_id=2, recording_id=3, channel="aeron:ipc"
    )
    content = bytearray(encode(update))
    struct.pack_into("<I", content, HEADER.size + 24, length)
    with pytest.raises(MalformedMessage, match=f"channel: .* at most 9, found {length}"):
        decode(content)


def test_non_ascii_text_is_replaced_when_encoded_or_decoded():
    connect = AuthConnectRequest(
        correlation_id=1, response_stream_id=2, version=3, response_channel="aeron:\u20ac",
        encoded_credentials=b"\xe2\x82\xac",
    )  # fmt: skip
    content = encode(connect)
    assert b"aeron:?" in content
    decoded = decode(content.replace(b"aeron:?", b"aeron:\xff"))
    assert decoded.response_channel == "aeron:\ufffd"
    assert decoded.encoded_credentials == b"\xe2\x82\xac"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_arbitrary_bytes_are_decoded_or_rejected(kind):
    content = encode(CloseSessionRequest(control_session_id=7))
    assert decode(kind(content)) == CloseSessionRequest(control_session_id=7)


def test_a_mutated_message_is_decoded_or_rejected():
    samples = [encode(REPLAY), encode(ALL_STRINGS)]
    refused = 0
    for seed in range(FUZZ_SEEDS):
        chance = random.Random(seed)
        content = bytearray(chance.choice(samples))
        content[2:4] = struct.pack("<H", chance.choice(KINDS).TEMPLATE_ID)
        for _ in range(chance.randint(1, 6)):
            content[chance.randrange(len(content))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        del content[chance.randint(0, 2 * len(content)) :]
        try:
            assert isinstance(decode(content), Message)
        except MalformedMessage:
            refused += 1
    assert FUZZ_SEEDS // 10 < refused < FUZZ_SEEDS - FUZZ_SEEDS // 10
