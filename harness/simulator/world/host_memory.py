"""Reuses the memory of a simulated host for the hosts of later worlds.

    first host      arrays are created, and their initial contents are noted
    later hosts     the same arrays are restored to their initial contents

Creating the arrays of a driver's agents takes as long as a short simulation: hundreds of megabytes
are mapped and unmapped, of which a driver with few streams uses some pages. Only one world at a
time may use a memory.
"""

import ctypes
import mmap
from collections.abc import Iterator, Sequence

import numpy as np

from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.media import link
from windtunnel.driver.media_driver import composition
from windtunnel.driver.media_driver.composition import AgentStates
from windtunnel.driver.media_driver.context import SETTINGS, Context
from windtunnel.driver.media_driver.image.loss_report import LossReport

MAILBOXES = 16
LARGE_BYTES = 1 << 20
"""Size in bytes from which an array is known to be all zeros at first."""
PAGED_BYTES = 1 << 16
"""Size in bytes from which an array of zeros is returned to the system, which provides zeroed pages
when they are used again. Clearing a smaller one takes less time.
"""
_libc = ctypes.CDLL(None, use_errno=True)


class HostMemory:
    """The mailboxes of a simulated host, and the states of its driver's agents."""

    def __init__(self, ring_bytes: int) -> None:
        """Create the mailboxes, with a ring of `ring_bytes` for each direction."""
        self.ring_bytes = ring_bytes
        self.links = link.make_links(MAILBOXES, ring_bytes)
        self._context: Context | None = None
        self._agents: AgentStates | None = None
        self._contents: list[InitialContent] = []

    def create_agents(
        self, context: Context, cnc: CncFile, loss_report: LossReport, links: object
    ) -> AgentStates:
        """Return states that are equal to new ones, see `composition.make_agents`, and close all
        mailboxes. What was returned before must no longer be in use.
        """
        assert links is self.links, "the driver uses the mailboxes of its host"
        for each in self._contents:
            each.restore()
        is_same = context is self._context or _is_alike(context, self._context)
        self._context = context
        if self._agents is None or not is_same:
            self._agents = composition.make_agents(context, cnc, loss_report, links)
            files = (cnc.counters_values, cnc.to_driver, loss_report.report)
            own = [each for each in _arrays((*self._agents, self.links)) if not _is_in(each, files)]
            self._contents = [InitialContent(each) for each in _without_parts(own)]
        return composition.with_files(self._agents, cnc, loss_report)


HostMemories = dict[str, HostMemory]
"""The memories of a world's hosts, by name."""


class InitialContent:
    """The initial content of an array, which can be restored."""

    def __init__(self, array: np.ndarray) -> None:
        self.bytes: np.ndarray = array.view(np.ndarray).reshape(-1).view(np.uint8)
        size, address = self.bytes.size, self.bytes.ctypes.data
        is_zero = size >= LARGE_BYTES or not self.bytes.any()
        self._content = None if is_zero else self.bytes.copy()
        begin = end = size
        if is_zero and size >= PAGED_BYTES:
            begin = -address % mmap.PAGESIZE
            end = size - (address + size) % mmap.PAGESIZE
        self._pages = ctypes.c_void_p(address + begin), ctypes.c_size_t(end - begin)
        parts = (self.bytes[:begin], self.bytes[end:])
        self._cleared = [each for each in parts if is_zero and each.size]

    def restore(self) -> None:
        """Restore the content."""
        if self._content is not None:
            self.bytes[:] = self._content
        for each in self._cleared:
            each.fill(0)
        address, length = self._pages
        if length and _libc.madvise(address, length, mmap.MADV_DONTNEED):
            raise OSError(ctypes.get_errno(), f"madvise of {length.value} bytes")


def _is_alike(context: Context, other: Context | None) -> bool:
    """Return whether two drivers have the same settings, possibly in different directories."""
    names = SETTINGS.keys() - {"dir"}
    return other is not None and all(getattr(context, n) == getattr(other, n) for n in names)


def _arrays(state: object) -> Iterator[np.ndarray]:
    """Yield the arrays in a state, which is an array or a tuple of states."""
    if isinstance(state, np.ndarray):
        yield state
    elif isinstance(state, tuple):
        for each in state:
            yield from _arrays(each)


def _is_in(array: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    return any(np.may_share_memory(array, each) for each in others)


def _without_parts(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return those arrays that do not lie within another one."""
    kept: list[np.ndarray] = []
    for each in sorted(arrays, key=lambda array: -array.nbytes):
        if each.size and not _is_in(each, kept):
            kept.append(each)
    return kept
