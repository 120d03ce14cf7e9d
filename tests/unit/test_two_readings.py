"""Two readings of one specification: the driver's offsets and the judge's tables must agree."""

import pytest

from windtunnel.driver.wire import (
    data,
    error,
    frame_type,
    header,
    nak,
    resolution,
    response_setup,
    rtt_measurement,
    setup,
    status_message,
)
from windtunnel.harness.dissect.frames import frames, layout

READINGS = {
    "PAD": data,
    "DATA": data,
    "NAK": nak,
    "SM": status_message,
    "ERR": error,
    "SETUP": setup,
    "RTTM": rtt_measurement,
    "RSP_SETUP": response_setup,
}
OTHER_NAMES = {
    ("NAK", "length"): "GAP_LENGTH",
    ("ERR", "error_length"): "TEXT_LENGTH",
    ("SM", "consumption_term_id"): "TERM_ID",
    ("SM", "consumption_term_offset"): "TERM_OFFSET",
    ("SM", "receiver_window"): "WINDOW_LENGTH",
    ("SETUP", "mtu"): "MTU_LENGTH",
}
"""Where the two readings call a field differently."""

FIELDS = [
    (kind.name, field) for kind in layout.FRAMES if kind.name in READINGS for field in kind.fields
]


@pytest.mark.parametrize(
    ("kind", "field"), FIELDS, ids=[f"{kind}.{field.name}" for kind, field in FIELDS]
)
def test_both_readings_place_each_field_at_the_same_offset(kind, field):
    name = OTHER_NAMES.get((kind, field.name), field.name.upper())
    assert getattr(READINGS[kind], name) == field.offset


@pytest.mark.parametrize("kind", layout.FRAMES, ids=lambda kind: kind.name)
def test_each_kind_has_one_type_code_and_one_fixed_length(kind):
    assert getattr(frame_type, kind.name) == kind.type_code
    if kind.name in READINGS:
        reading = READINGS[kind.name]
        length = reading.HEADER_LENGTH if reading is data else reading.LENGTH
        assert length == kind.length


def test_the_generic_header_is_the_same():
    ours = [field.offset for field in layout.HEADER]
    assert ours == [header.FRAME_LENGTH, header.VERSION, header.FLAGS, header.TYPE]
    assert layout.HEADER_LENGTH == header.LENGTH
    assert layout.FRAME_ALIGNMENT == header.ALIGNMENT == frames.FRAME_ALIGNMENT
    assert layout.DATA_HEADER_LENGTH == header.DATA_HEADER_LENGTH == frames.DATA_HEADER_LENGTH


def test_flags_mean_the_same():
    assert (layout.FLAG_BEGIN, layout.FLAG_END) == (frame_type.BEGIN, frame_type.END)
    assert layout.FLAG_END_OF_STREAM == frame_type.EOS
    assert layout.FLAG_REVOKED == frame_type.REVOKED
    assert layout.SETUP_FLAG_GROUP == frame_type.GROUP
    assert layout.SETUP_FLAG_SEND_RESPONSE == frame_type.SEND_RESPONSE_SETUP
    assert layout.SM_FLAG_SEND_SETUP == frame_type.SEND_SETUP
    assert layout.SM_FLAG_END_OF_STREAM == frame_type.SM_EOS
    assert layout.RTTM_FLAG_REPLY == frame_type.REPLY
    assert layout.ERR_FLAG_HAS_GROUP_TAG == frame_type.HAS_GROUP_TAG
    assert layout.RES_FLAG_SELF == frame_type.SELF


def test_both_readings_place_the_fields_of_a_resolution_entry_at_the_same_offsets():
    ours = {field.name: field.offset for field in layout.RES_ENTRY}
    theirs = [resolution.RES_TYPE, resolution.RES_FLAGS, resolution.UDP_PORT, resolution.AGE_MS]
    assert list(ours.values()) == theirs
    assert layout.RES_ENTRY[-1].end == resolution.ADDRESS


@pytest.mark.parametrize("kind", layout.FRAMES, ids=lambda kind: kind.name)
def test_the_fast_reader_knows_the_same_lengths_as_the_tables(kind):
    assert frames._SHORTEST[kind.type_code] == kind.length
