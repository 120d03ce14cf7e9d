"""The relay's system calls return a negative errno if they fail."""

import errno
import socket

import numpy as np

from windtunnel.harness.middlebox.relay import libc


def test_a_call_that_fails_returns_its_negative_errno():
    headers = np.zeros(1, dtype=libc.MMSGHDR)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as empty:
        descriptor = empty.fileno()
        assert libc.receive_batch(descriptor, headers.ctypes.data, 1) == -errno.EAGAIN
    assert libc.receive_batch(descriptor, headers.ctypes.data, 1) == -errno.EBADF
