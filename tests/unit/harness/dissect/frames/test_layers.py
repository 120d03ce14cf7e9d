"""The scapy layers read frames of real Aeron, and write them back with equal bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tests.golden.reader import datagrams, load_array
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.dissect.capture.pcap import read_capture_bytes
from windtunnel.harness.dissect.frames import layers, layout

KINDS = {
    layers.AeronData: "DATA",
    layers.AeronPad: "PAD",
    layers.AeronHeartbeat: "HEARTBEAT",
    layers.AeronSetup: "SETUP",
    layers.AeronStatusMessage: "SM",
    layers.AeronNak: "NAK",
    layers.AeronRttMeasurement: "RTTM",
}
SETS = [
    ("one-message", "capture.pcap"),
    ("loss-unreliable", "capture.pcap"),
    ("java-cubic-loss", "opening.pcap"),
]


def rebuilt(frame):
    """Return the bytes of a frame, built from its fields."""
    fresh = frame.__class__(**{name: frame.getfieldval(name) for name in frame.fields})
    return bytes(fresh)


@pytest.mark.parametrize(("golden", "name"), SETS)
def test_scapy_and_the_kernel_read_the_same_frames(golden, name):
    capture = read_capture_bytes(load_array(golden, name))
    ours = iter(capture.frames)
    for datagram in datagrams(golden, name):
        for frame in layers.frames_in(datagram.payload):
            row = next(ours)
            assert KINDS[type(frame)] == NAMES[int(row["frame_type"])]
            shared = set(frame.fields) & {*FIELDS, *ONLY_OF.get(type(frame), ())}
            assert {each: int(frame.getfieldval(each)) for each in shared} == {
                each: int(row[each]) for each in shared
            }
    assert next(ours, None) is None


FIELDS = [
    "frame_length",
    "version",
    "flags",
    "session_id",
    "stream_id",
    "term_id",
    "term_offset",
    "initial_term_id",
    "term_length",
    "mtu",
]
ONLY_OF = {layers.AeronStatusMessage: ("receiver_id",)}


@pytest.mark.parametrize(("golden", "name"), SETS)
def test_every_golden_datagram_is_written_back(golden, name):
    for datagram in datagrams(golden, name):
        frames = layers.frames_in(datagram.payload)
        assert b"".join(rebuilt(frame) for frame in frames) == datagram.payload


def test_lengths_and_alignment_are_filled_in():
    batch = layers.AeronData(data=b"abc") / layers.AeronData(data=b"x" * 40)
    batch /= layers.AeronPad(frame_length=96)
    written = bytes(batch)
    assert len(written) == 64 + 96 + 32
    lengths = [frame.frame_length for frame in layers.frames_in(written)]
    assert lengths == [35, 72, 96]
    assert layers.frames_in(written)[1].data == b"x" * 40
    assert bytes(layers.AeronHeartbeat(term_offset=64))[:12] == bytes.fromhex(
        "00000000 00c00100 40000000"
    )


@pytest.mark.parametrize(
    ("frame", "length"),
    [
        (layers.AeronSetup(), 40),
        (layers.AeronStatusMessage(), 36),
        (layers.AeronStatusMessage(frame_length=44, group_tag=-5), 44),
        (layers.AeronNak(), 28),
        (layers.AeronRttMeasurement(), 40),
        (layers.AeronError(error_length=5, text=b"no!!!"), 45),
        (layers.AeronResponseSetup(), 20),
    ],
)
def test_each_type_is_read_back_as_written(frame, length):
    written = bytes(frame)
    assert (len(written), int.from_bytes(written[:4], "little")) == (length, length)
    (again,) = layers.frames_in(written)
    assert type(again) is type(frame)
    assert bytes(again) == written


def test_a_group_tag_exists_only_if_the_length_includes_it():
    (plain,) = layers.frames_in(bytes(layers.AeronStatusMessage()))
    assert plain.group_tag is None
    tagged = bytes(layers.AeronStatusMessage(frame_length=44, group_tag=-5))
    assert layers.frames_in(tagged)[0].group_tag == -5


def test_names_of_a_resolution_frame_are_read_back():
    entries = [
        layers.AeronResolutionEntry(res_type=1, udp_port=7, address="1.2.3.4", host=b"abc"),
        layers.AeronResolutionEntry(res_type=2, address="::1", host=b"x"),
    ]
    written = bytes(layers.AeronResolution(entries=entries))
    assert len(written) == 8 + 24 + 32
    (again,) = layers.frames_in(written)
    assert [(entry.host, entry.address) for entry in again.entries] == [
        (b"abc", "1.2.3.4"),
        (b"x", "::1"),
    ]


def test_ports_are_bound_and_unbound():
    packet = Ether() / IP() / UDP(sport=5, dport=24999) / Raw(bytes(layers.AeronNak(length=32)))
    layers.bind_ports([24999])
    try:
        assert Ether(bytes(packet))[layers.AeronNak].length == 32
    finally:
        layers.unbind_ports([24999])
    assert layers.AeronNak not in Ether(bytes(packet))


@given(st.binary(max_size=120), st.sampled_from([None, *layout.BY_TYPE_CODE]))
def test_arbitrary_bytes_cause_no_exception(data, type_code):
    if type_code is not None and len(data) >= 8:
        data = data[:6] + struct.pack("<H", type_code) + data[8:]
    frames = layers.frames_in(data)
    assert data == b"" or frames


def test_every_table_has_its_layer():
    assert set(layers.LAYERS) == set(layout.BY_TYPE_CODE)
    for frame in layout.FRAMES:
        names = [field.name for field in layers.LAYERS[frame.type_code].fields_desc]
        assert names[: 4 + len(frame.fields)] == [
            field.name for field in (*layout.HEADER, *frame.fields)
        ]
