"""The capacity of a simulated host's sockets is that of the buffers that its channels specify."""

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.simulator.world.host import RING_BYTES
from windtunnel.harness.simulator.world.world import _ring_bytes, receive_ring_bytes

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def case(tmp_path):
    return make_run(tmp_path).case


def with_channels(case, send="", receive=""):
    (stream,) = case.traffic
    update = {"channel": stream.channel + send, "receive": stream.receive + receive}
    return case.model_copy(update={"traffic": (stream.model_copy(update=update),)})


@pytest.mark.parametrize(
    ("receive", "expected"),
    [("", RING_BYTES), ("|so-rcvbuf=1m", 2 * MIB), ("|so-rcvbuf=16m", 32 * MIB)],
)
def test_a_subscriber_has_room_for_twice_its_receive_buffer(case, receive, expected):
    asked = with_channels(case, receive=receive)
    assert receive_ring_bytes(asked, "b") == expected == _ring_bytes(asked, "b")
    assert receive_ring_bytes(asked, "a") == RING_BYTES == _ring_bytes(asked, "a")


def test_a_publisher_has_room_for_its_send_buffer_only(case):
    asked = with_channels(case, send="|so-sndbuf=64k", receive="|so-rcvbuf=16m")
    assert _ring_bytes(asked, "a") == 64 * KIB
    assert _ring_bytes(asked, "b") == 32 * MIB
