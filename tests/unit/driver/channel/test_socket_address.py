"""Socket addresses as bytes, in kernels and in Python, for any bytes."""

import socket

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.naive import socket_address as naive
from windtunnel.driver.channel import socket_address
from windtunnel.driver.channel.socket_address import SocketAddress

ADDRESSES = st.builds(SocketAddress, st.ip_addresses().map(str), st.integers(0, 65535)) | st.builds(
    SocketAddress,
    st.ip_addresses(v=6).map(str),
    st.integers(0, 65535),
    st.integers(0, (1 << 32) - 1),
)
FAMILIES = [b"", b"\x02\x00", b"\x0a\x00", b"\x01\x00", b"\xff\xff"]
JUNK = st.builds(
    lambda family, rest: (family + rest)[:28], st.sampled_from(FAMILIES), st.binary(max_size=28)
)
NAMES = ADDRESSES.map(SocketAddress.encode) | JUNK


def in_record(name):
    buf = np.zeros(28, dtype=np.uint8)
    buf[: len(name)] = np.frombuffer(name, dtype=np.uint8)
    return buf, len(name)


@given(ADDRESSES)
def test_decoding_inverts_encoding(address):
    assert socket_address.decode(address.encode()) == address
    buf = np.full(28, 0xFF, dtype=np.uint8)
    length = socket_address.write_name(buf, address)
    assert socket_address.read_name(buf, length) == address
    assert not buf[length:].any()
    assert socket_address.port_of(buf) == address.port


@given(JUNK)
def test_any_bytes_decode_to_an_address_or_to_none(name):
    decoded = socket_address.decode(name)
    if decoded is not None:
        assert naive.fields(decoded.encode())[:3] == (
            int(decoded.family), decoded.port, decoded.ip.packed
        )  # fmt: skip
    buf, length = in_record(name)
    assert socket_address.read_name(buf, length) == decoded


@given(NAMES, NAMES)
@example(b"\x02\x00" + bytes(26), b"\x02\x00" + bytes(26))
def test_comparisons_agree_with_the_naive_implementation(one, other):
    first, second = in_record(one), in_record(other)
    assert socket_address.is_name(*first) == naive.is_name(one)
    assert socket_address.same(*first, *second) == naive.same(one, other)
    assert socket_address.same_host(*first, *second) == naive.same_host(one, other)


@given(ADDRESSES, st.integers(0, 28))
def test_one_changed_byte_distinguishes_names_unless_it_is_padding(address, at):
    name = bytearray(address.encode())
    at %= len(name)
    name[at] ^= 1
    changed = bytes(name)
    result = socket_address.same(*in_record(address.encode()), *in_record(changed))
    padding = range(8, 16) if len(name) == 16 else range(4, 8)
    assert result == (at in padding)


@pytest.mark.parametrize("length", [-1, 0, 16, 28, 1000])
def test_copies_no_more_than_a_name(length):
    source, target = np.arange(28, dtype=np.uint8), np.zeros(28, dtype=np.uint8)
    copied = socket_address.copy_name(target, source, length)
    assert copied == max(0, min(length, 28))
    assert bytes(target) == bytes(range(copied)).ljust(28, b"\0")


def test_no_name_is_none():
    buf = np.full(28, 7, dtype=np.uint8)
    assert socket_address.write_name(buf, None) == 0
    assert not buf.any()
    socket_address.write_name(buf, SocketAddress("::1", 1))
    for length in (-1, 0, 29, 1 << 40):
        assert socket_address.read_name(buf, length) is None


def test_text_is_the_form_of_counters():
    assert SocketAddress("127.0.0.1", 24325).text == "127.0.0.1:24325"
    assert str(SocketAddress("::1", 24325)) == "[::1]:24325"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_operating_system_accepts_the_encoding(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind(SocketAddress(host, 0).python_name)
        address = socket_address.from_python_name(sock.getsockname())
        assert (address.host, address.family) == (host, family)
        assert address.with_port(1).port == 1


@pytest.mark.parametrize(("host", "port"), [("localhost", 1), ("", 1), ("1.2.3", 1)])
def test_names_are_not_addresses(host, port):
    with pytest.raises(ValueError, match="does not appear"):
        SocketAddress(host, port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_ports_have_sixteen_bits(port):
    with pytest.raises(AssertionError):
        SocketAddress("1.2.3.4", port)
