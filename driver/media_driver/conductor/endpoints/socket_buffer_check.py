"""Compares the actual socket buffer lengths with the settings.

The MTU must fit into the send buffer and the initial window into the receive buffer. The system may
grant less than requested, so a temporary socket is opened for the comparison. Source: spec 10.1,
Aeron 1.53.
"""

import socket
from collections.abc import Callable
from typing import NamedTuple

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.context import SETTINGS, Context


class BufferLengths(NamedTuple):
    """The buffer lengths, in bytes, that the system grants to the driver's sockets."""

    sndbuf_length: int
    rcvbuf_length: int


def probe_buffers(context: Context) -> BufferLengths:
    """Return the buffer lengths of a temporary socket with the driver's options."""
    requested = (
        (socket.SO_SNDBUF, context.socket_sndbuf_length),
        (socket.SO_RCVBUF, context.socket_rcvbuf_length),
    )
    actual = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for option, length in requested:
            if length:
                probe.setsockopt(socket.SOL_SOCKET, option, length)
            actual.append(probe.getsockopt(socket.SOL_SOCKET, option))
    return BufferLengths(*actual)


def check_socket_buffers(
    context: Context, actual: BufferLengths, warn: Callable[[str], None]
) -> None:
    """Warn about socket buffers that are smaller than requested. Raises ConfigurationError if they
    are too small to use.
    """
    faults = []
    for name, need, length in (
        ("socket_sndbuf_length", "mtu_length", actual.sndbuf_length),
        ("socket_rcvbuf_length", "initial_window_length", actual.rcvbuf_length),
    ):
        variable, option = SETTINGS[name].variable, name[7:13].upper()
        requested, needed = getattr(context, name), getattr(context, need)
        if requested > length:
            warn(
                f"WARNING: could not get the desired SO_{option}, adjust the system's limit to "
                f"match {variable}: attempted={requested}, actual={length}"
            )
        if needed > length:
            faults.append(
                f"{SETTINGS[need].variable} is {needed}, but SO_{option} is only {length}: "
                f"raise {variable}"
            )
    if faults:
        raise ConfigurationError("; ".join(faults))
