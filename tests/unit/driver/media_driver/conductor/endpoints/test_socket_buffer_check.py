"""Socket buffers are compared with the MTU and the window."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.conductor.endpoints.socket_buffer_check import (
    BufferLengths,
    check_socket_buffers,
    probe_buffers,
)
from windtunnel.driver.media_driver.context import Context


def check(given, **settings):
    warnings = []
    check_socket_buffers(Context(**settings), BufferLengths(*given), warnings.append)
    return warnings


def test_a_buffer_that_just_fits_is_accepted():
    assert check((1_408, 131_072)) == []


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        ((1_407, 131_072), ["AERON_MTU_LENGTH is 1408", "AERON_SOCKET_SO_SNDBUF"]),
        ((1_408, 131_071), ["AERON_RCV_INITIAL_WINDOW_LENGTH", "AERON_SOCKET_SO_RCVBUF"]),
        ((1, 1), ["AERON_MTU_LENGTH", "AERON_RCV_INITIAL_WINDOW_LENGTH"]),
    ],
)
def test_a_buffer_that_is_too_small_is_rejected(given, variables):
    with pytest.raises(ConfigurationError) as caught:
        check(given, socket_rcvbuf_length=0)
    assert all(variable in str(caught.value) for variable in variables)


def test_a_buffer_smaller_than_requested_is_a_warning():
    (warning,) = check((2_000, 131_072), socket_sndbuf_length=2_001)
    assert "SO_SNDBUF" in warning
    assert "attempted=2001, actual=2000" in warning
    assert check((2_000, 131_072), socket_sndbuf_length=2_000) == []


def test_a_real_socket_has_buffers():
    given = probe_buffers(Context(socket_sndbuf_length=65_536, socket_rcvbuf_length=0))
    assert given.sndbuf_length >= 65_536
    assert given.rcvbuf_length >= 2_304
