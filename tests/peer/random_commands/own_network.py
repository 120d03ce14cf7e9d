"""Run a command in a network namespace of its own, in which only loopback exists.

    python -m tests.peer.random_commands.own_network COMMAND...

Two drivers can thus use the same addresses and ports at the same time. Needs root.
"""

import fcntl
import os
import socket
import struct
import sys

SIOCSIFFLAGS = 0x8914
IFF_UP, IFF_LOOPBACK, IFF_MULTICAST = 0x1, 0x8, 0x1000


def main() -> None:
    """Replace this process by the command."""
    os.unshare(os.CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = IFF_UP | IFF_LOOPBACK | IFF_MULTICAST
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))
    command = sys.argv[1:]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
