"""Documents in lines over a socket."""

import socket
from collections.abc import Iterator

import pytest

from windtunnel.harness.orchestrate.live.line_channel import (
    LINE_BYTES_MAX,
    ChannelClosed,
    LineChannel,
)


@pytest.fixture
def ends() -> Iterator[tuple[LineChannel, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield LineChannel(one), other


def test_documents_arrive_in_order_whatever_their_pieces(ends) -> None:
    channel, other = ends
    other.sendall(b'{"id": 1}\n{"id":')
    assert channel.receive(1) == [{"id": 1}]
    other.sendall(b" 2}\n\n")
    assert channel.receive(1) == [{"id": 2}]
    assert channel.receive(0) == []


def test_a_document_is_sent_as_a_line(ends) -> None:
    channel, other = ends
    channel.send({"ok": "a\nb"})
    assert other.recv(100) == b'{"ok": "a\\nb"}\n'


@pytest.mark.parametrize("line", [b"[1]\n", b"nonsense\n", b"\xff\n"])
def test_anything_else_closes_the_channel(ends, line: bytes) -> None:
    channel, other = ends
    other.sendall(line)
    with pytest.raises(ChannelClosed, match="expected"):
        channel.receive(1)


def test_the_end_is_detected(ends) -> None:
    channel, other = ends
    other.close()
    with pytest.raises(ChannelClosed, match="closed the connection"):
        channel.receive(1)
    with pytest.raises(ChannelClosed):
        channel.send({})


def test_a_line_has_a_limit(ends) -> None:
    channel, other = ends
    for _ in range(LINE_BYTES_MAX >> 16):
        other.sendall(b"x" * 65536)
        assert channel.receive(1) == []
    other.sendall(b"x")
    with pytest.raises(ChannelClosed, match=f"at most {LINE_BYTES_MAX} bytes"):
        channel.receive(1)
