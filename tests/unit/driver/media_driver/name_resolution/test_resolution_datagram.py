"""Resolution frames compared with a naive implementation, and invalid frames."""

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.reader import GOLDEN
from tests.naive import resolution as naive
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.name_resolution.resolution_datagram import (
    Decoded,
    ResolutionEntry,
    decode,
    encode,
    encode_name,
)

A4 = ResolutionEntry("A", SocketAddress("10.0.0.1", 8050), age_ms=7, is_self=True)
B6 = ResolutionEntry("a longer name", SocketAddress("fd00::9", 65535), age_ms=0)

ENTRIES = st.builds(
    ResolutionEntry,
    st.text(max_size=40),
    st.builds(SocketAddress, st.ip_addresses().map(str).filter(lambda t: "%" not in t),
              st.integers(0, 65535)),
    st.integers(0, (1 << 31) - 1),
    st.booleans(),
)  # fmt: skip


def naive_entry(entry):
    flags = 0x80 if entry.is_self else 0
    address = entry.address
    return naive.entry(encode_name(entry.name), address.host, address.port, entry.age_ms, flags)


def test_entries_are_encoded_like_in_the_naive_implementation():
    (datagram,) = encode([A4, B6], 1408)
    assert datagram == naive.frame(naive_entry(A4), naive_entry(B6))
    assert decode(datagram) == Decoded((A4, B6))


@given(st.lists(ENTRIES, max_size=30), st.integers(80, 500))
def test_encoded_entries_are_decoded_from_the_fewest_datagrams(entries, length_max):
    datagrams = list(encode(entries, length_max))
    assert all(len(datagram) <= length_max for datagram in datagrams)
    fitting = [entry for entry in entries if 8 + len(naive_entry(entry)) <= length_max]
    assert [entry for datagram in datagrams for entry in decode(datagram).entries] == fitting
    for datagram, after in itertools.pairwise(datagrams):
        first = naive_entry(decode(after).entries[0])
        assert len(datagram) + len(first) > length_max


def test_an_entry_that_fits_to_the_byte_is_sent_and_one_byte_less_leaves_it_out():
    length = 8 + len(naive_entry(B6))
    assert len(list(encode([B6], length))) == 1
    assert list(encode([B6], length - 1)) == []


PIECES = st.one_of(
    ENTRIES.map(naive_entry),
    st.binary(max_size=30),
    st.sampled_from([naive.entry(b"n" * 513, "1.2.3.4", 1), naive.entry(b"n" * 512, "::1", 1)]),
)


@given(st.lists(PIECES, max_size=4), st.integers(0, 20))
def test_any_bytes_are_decoded_like_in_the_naive_implementation(pieces, cut):
    datagram = naive.frame(*pieces)
    datagram = datagram[: max(0, len(datagram) - cut)]
    entries, verdict = naive.read(datagram)
    decoded = decode(datagram)
    assert [
        (encode_name(e.name), e.address.host, e.address.port, e.age_ms, e.is_self)
        for e in decoded.entries
    ] == entries
    assert decoded.is_invalid == (verdict == "invalid")
    assert (decoded.unknown_type is not None) == (verdict == "unknown type")


@pytest.mark.parametrize(
    "datagram",
    [b"", b"\0" * 7, struct.pack("<iBBH", 8, 1, 0, 7), struct.pack("<iBBH", 8, 0, 0, 6)],
    ids=["empty", "short", "version", "another kind"],
)
def test_a_datagram_without_a_resolution_header_is_invalid(datagram):
    assert decode(datagram) == Decoded((), is_invalid=True)


def test_entries_before_an_invalid_one_are_decoded():
    good = naive_entry(A4)
    assert decode(naive.frame(good, b"\3" + bytes(15))) == Decoded((A4,), unknown_type=3)
    assert decode(naive.frame(good, good[:13])) == Decoded((A4,), is_invalid=True)


def test_a_negative_age_is_decoded_as_zero():
    (entry,) = decode(naive.frame(naive.entry(b"A", "10.0.0.1", 1, -5))).entries
    assert entry.age_ms == 0


def golden(name):
    return bytes.fromhex((GOLDEN / "resolution" / f"{name}.hex").read_text())


def without_padding(datagram):
    """Return the datagram with zeros after each name, where real drivers leave old bytes."""
    return naive.frame(
        *(
            naive.entry(name, host, port, age_ms, 0x80 * is_self)
            for name, host, port, age_ms, is_self in naive.read(datagram)[0]
        )
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("self-v4", [("golden-v4", "0.0.0.0", 40655, True)]),
        ("self-v6", [("golden-v6", "::1", 40655, True)]),
        ("names-v4", [("tester", "127.0.0.1", 40654, False), ("other", "fd00::9", 7, False)]),
        ("names-v6", [("tester", "::1", 40654, False), ("other", "10.0.0.9", 7, False)]),
    ],
)
def test_frames_of_real_drivers_are_decoded_and_encoded_to_the_same_bytes(name, expected):
    datagram = golden(name)
    decoded = decode(datagram)
    assert not decoded.is_invalid
    assert decoded.unknown_type is None
    decoded_entries = [(e.name, e.address.host, e.address.port, e.is_self) for e in decoded.entries]
    assert decoded_entries == expected
    assert list(encode(decoded.entries, 1408)) == [without_padding(datagram)]
    assert len(datagram) == len(without_padding(datagram))
    assert all(entry.age_ms < 10_000 for entry in decoded.entries)
    assert decoded.entries[-1].age_ms >= (1_500 if name.startswith("names") else 0)
