"""Whether the system's socket buffers hold what the settings promise.

A datagram must fit a send buffer and a window a receive buffer, or loss is certain. The system may
give less than was asked for, so a socket is asked. Source: spec 10.1, Aeron 1.53.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.context import SETTINGS, Context


@dataclass(frozen=True, slots=True)
class BufferLengths:
    """What a fresh socket of ours has, in bytes."""

    sndbuf_length: int
    rcvbuf_length: int


def probe_buffers(context: Context) -> BufferLengths:
    """Ask for the buffers as every socket of this driver will."""
    wanted = (
        (socket.SO_SNDBUF, context.socket_sndbuf_length),
        (socket.SO_RCVBUF, context.socket_rcvbuf_length),
    )
    given = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for option, length in wanted:
            if length:
                probe.setsockopt(socket.SOL_SOCKET, option, length)
            given.append(probe.getsockopt(socket.SOL_SOCKET, option))
    return BufferLengths(*given)


def check_socket_buffers(
    context: Context, given: BufferLengths, warn: Callable[[str], None]
) -> None:
    """Warn where the system gave less than was asked; refuse what cannot work."""
    faults = []
    for name, need, length in (
        ("socket_sndbuf_length", "mtu_length", given.sndbuf_length),
        ("socket_rcvbuf_length", "initial_window_length", given.rcvbuf_length),
    ):
        variable, option = SETTINGS[name].variable, name[7:13].upper()
        wanted, needed = getattr(context, name), getattr(context, need)
        if wanted > length:
            warn(
                f"WARNING: could not get the desired SO_{option}, adjust the system's limit to "
                f"match {variable}: attempted={wanted}, actual={length}"
            )
        if needed > length:
            faults.append(
                f"{SETTINGS[need].variable} is {needed}, but SO_{option} is only {length}: "
                f"raise {variable}"
            )
    if faults:
        raise ConfigurationError("; ".join(faults))
