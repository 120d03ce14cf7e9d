"""Message declarations compared with Aeron's schema, encoder output, and a captured
conversation.
"""

import re
from collections import Counter

import pytest

from tests.golden.archive_files import REQUEST_STREAM, RESPONSE_STREAM, conversation
from tests.golden.reader import GOLDEN
from windtunnel.driver.archive.protocol import requests, responses
from windtunnel.driver.archive.protocol.codec import BY_TEMPLATE_ID, HEADER, decode, encode
from windtunnel.driver.archive.protocol.codes import ControlResponseCode, RecordingSignal

ON_DISK_ALONE = ("CatalogHeader", "RecordingDescriptorHeader")
TYPES = {"q": "int64", "i": "int32"}
GOLDEN_SET = GOLDEN / "archive-messages"


def _schema():
    """Return {name: (template id, block length, [(field, place, type, since)])} of
    Aeron's schema.
    """
    found, name = {}, ""
    for line in (GOLDEN_SET / "schema.txt").read_text().splitlines():
        words = line.split()
        pairs = dict(word.split("=") for word in words[1:])
        if line.startswith(" "):
            row = (words[0], pairs["at"], pairs["type"], int(pairs["since"]))
            found[name][2].append(row)
        else:
            name = words[0]
            found[name] = (int(pairs["template"]), int(pairs["block"]), [])
    return {name: row for name, row in found.items() if name not in ON_DISK_ALONE}


def _snake(name):
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


def _declared(layout):
    rows = [
        (field.name, str(field.offset), TYPES[field.code], field.since) for field in layout.fixed
    ]
    for number, field in enumerate(layout.variable, 1):
        rows.append((field.name, f"var{number}", "text" if field.is_text else "bytes", field.since))
    return rows


def _encoded():
    lines = (GOLDEN_SET / "messages.txt").read_text().splitlines()
    return [
        pytest.param(bytes.fromhex(line.split()[0]), id=line.split(" ", 1)[1]) for line in lines
    ]


def test_every_message_of_the_schema_is_declared_and_no_other():
    declared = {kind.__name__: template_id for template_id, kind in BY_TEMPLATE_ID.items()}
    assert declared == {name: row[0] for name, row in _schema().items()}


@pytest.mark.parametrize("name", _schema())
def test_fields_have_the_offsets_of_the_schema(name):
    template_id, block_length, rows = _schema()[name]
    layout = BY_TEMPLATE_ID[template_id].LAYOUT
    assert layout.block_length == block_length
    assert _declared(layout) == [(_snake(field), *rest) for field, *rest in rows]


@pytest.mark.parametrize("content", _encoded())
def test_messages_encoded_by_aeron_encode_to_the_same_bytes(content, request):
    message = decode(content)
    assert type(message).__name__ == request.node.callspec.id.split()[0]
    assert encode(message) == content


def test_values_are_those_that_aeron_encoded():
    by_name = {each.id: each.values[0] for each in _encoded()}
    replay = decode(by_name["BoundedReplayRequest"])
    assert replay == requests.BoundedReplayRequest(
        control_session_id=1001, correlation_id=2002, recording_id=3, position=64,
        length=(1 << 63) - 1, limit_counter_id=77, replay_stream_id=11, file_io_max_length=4096,
        replay_token=-1, replay_channel="aeron:ipc",
    )  # fmt: skip
    assert decode(by_name["AuthConnectRequest"]) == requests.AuthConnectRequest(
        correlation_id=2002, response_stream_id=20, version=68608,
        response_channel="aeron:udp?endpoint=localhost:0", encoded_credentials=b"user:pw",
        client_info="name=x",
    )  # fmt: skip
    failed = decode(by_name["ControlResponse ERROR"])
    assert (failed.code, failed.relevant_id, failed.error_message) == (
        ControlResponseCode.ERROR, 5, "boom",
    )  # fmt: skip


@pytest.mark.parametrize("stream_id", [REQUEST_STREAM, RESPONSE_STREAM])
def test_every_message_of_a_captured_session_encodes_to_the_same_bytes(stream_id):
    contents = conversation(stream_id)
    assert len(contents) > 30
    for content in contents:
        message = decode(content)
        again = encode(message)
        # A descriptor is sent with the padding of its catalog entry.
        is_padded = isinstance(message, responses.RecordingDescriptor)
        assert content[: len(again)] == again
        assert len(content) == len(again) or is_padded


def test_a_captured_session_has_the_expected_requests_and_signals():
    sent = [decode(content) for content in conversation(REQUEST_STREAM)]
    received = [decode(content) for content in conversation(RESPONSE_STREAM)]
    assert isinstance(sent[0], requests.AuthConnectRequest)
    assert isinstance(sent[-1], requests.CloseSessionRequest)
    counts = Counter(type(message).__name__ for message in sent)
    assert counts["StartRecordingRequest"] == 3
    assert counts["ExtendRecordingRequest"] == counts["DetachSegmentsRequest"] == 1
    signals = [
        (each.recording_id, each.signal, each.position)
        for each in received
        if isinstance(each, responses.RecordingSignalEvent)
    ]
    assert signals == [
        (0, RecordingSignal.START, 0), (0, RecordingSignal.STOP, 214688),
        (0, RecordingSignal.EXTEND, 214688), (0, RecordingSignal.STOP, 268448),
        (1, RecordingSignal.START, 0), (1, RecordingSignal.STOP, 479104),
        (2, RecordingSignal.START, 0), (2, RecordingSignal.STOP, 855776),
    ]  # fmt: skip
    assert all(HEADER.unpack_from(each)[2] == 101 for each in conversation(RESPONSE_STREAM))
