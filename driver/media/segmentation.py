"""Datagrams of equal length that lie one behind the other leave as one run, which the system cuts
up.

    entries   | 1408 | 1408 | 1408 | 640 |   | 1408 | 96 |         a gap, or a longer one behind a
              +--------- run 0 ----------+   +- run 1 ---+         shorter one, begins a new run

One system call a run is what makes small datagrams cheap. A link that treats each datagram by
itself must not be sent runs: for it a run is one packet. Source: Linux udp(7), UDP_SEGMENT.
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media.system_message import (
    CONTROL_LENGTH,
    IOVEC,
    MESSAGE_LENGTH,
    make_headers,
    put_segment_length,
)

RUN_SEGMENTS_MAX = 64
"""Datagrams in a run. Source: Linux UDP_MAX_SEGMENTS; later kernels allow more."""
RUN_LENGTH_MAX = 65_000
"""Bytes in a run: what fits one packet, with room for its headers."""


class GsoBatch(NamedTuple):
    """Runs about to leave."""

    headers: np.ndarray  # MESSAGE[n]
    vectors: np.ndarray  # IOVEC[n]
    controls: np.ndarray  # uint8[n * CONTROL_LENGTH]
    ends: np.ndarray  # int64[n], the entry behind each run


def make_run_batch(count: int) -> GsoBatch:
    """Room for `count` runs in one system call."""
    vectors = np.zeros(count, dtype=IOVEC).view(np.recarray)
    headers = make_headers(vectors)
    controls = np.zeros(count * CONTROL_LENGTH, dtype=np.uint8)
    headers.control = controls.ctypes.data + CONTROL_LENGTH * np.arange(count)
    return GsoBatch(headers, vectors, controls, np.zeros(count, dtype=np.int64))


@kernel
def gather_runs(runs, vectors, first, count):
    """Put entries `first` .. `first + count` together as far as they go. Returns how many runs."""
    made = 0
    index = first
    while index < first + count:
        begin = index
        segment = int(vectors[begin].length)
        total = segment
        index += 1
        is_open = True
        while is_open and index < first + count and index - begin < RUN_SEGMENTS_MAX:
            length = int(vectors[index].length)
            is_behind = int(vectors[index].address) == int(vectors[begin].address) + total
            if not is_behind or length > segment or total + length > RUN_LENGTH_MAX:
                break
            total += length
            index += 1
            is_open = length == segment
        header = runs.headers[made]
        header.control_length = 0
        if index - begin > 1:
            header.control_length = put_segment_length(runs.controls, made, segment)
        runs.vectors[made].address = vectors[begin].address
        runs.vectors[made].length = total
        runs.ends[made] = index
        made += 1
    return made


@kernel
def send_runs(fd, runs, vectors, first, count, name_address, name_length):
    """Send entries `first` .. `first + count` as runs.

    Returns: how many entries left, in order from `first`; or -errno
    """
    made = gather_runs(runs, vectors, first, count)
    for index in range(made):
        header = runs.headers[index]
        header.name = name_address
        header.name_length = name_length
        # The kernel looks for control data wherever there is an address with a length.
    result = system.sendmmsg(fd, runs.headers.ctypes.data, made, system.MSG_DONTWAIT)
    if result <= 0:
        return result
    return runs.ends[result - 1] - first


assert MESSAGE_LENGTH == 64
