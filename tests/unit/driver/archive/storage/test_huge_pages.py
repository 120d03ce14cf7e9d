"""Which parts of a segment file are allocated in huge pages."""

import os

import pytest

from windtunnel.driver.archive.storage import huge_pages
from windtunnel.driver.archive.storage.huge_pages import HUGE_PAGE_LENGTH as HUGE

LENGTH = 4 * HUGE


@pytest.fixture
def file():
    """A sparse file in shared memory."""
    descriptor = os.memfd_create("segment")
    os.ftruncate(descriptor, LENGTH)
    yield descriptor
    os.close(descriptor)


def allocated_bytes(file):
    return 512 * os.fstat(file).st_blocks


def can_collapse():
    descriptor = os.memfd_create("probe")
    try:
        os.ftruncate(descriptor, HUGE)
        return huge_pages._collapse(descriptor, 0)
    finally:
        os.close(descriptor)


kernel_can_collapse = pytest.mark.skipif(
    not can_collapse(), reason="this kernel does not make huge pages in shared memory"
)


@kernel_can_collapse
@pytest.mark.parametrize(
    ("start", "end", "first", "count"),
    [
        (0, 1, 0, 1),
        (0, HUGE, 0, 1),
        (0, HUGE + 1, 0, 2),
        (1, HUGE, 0, 0),
        (HUGE - 1, HUGE + 1, 1, 1),
        (LENGTH - HUGE, LENGTH, 3, 1),
        (LENGTH - 1, LENGTH, 0, 0),
    ],
)
def test_the_ranges_that_begin_in_a_block_are_allocated(file, start, end, first, count):
    huge_pages.allocate(file, start, end, LENGTH)
    assert allocated_bytes(file) == count * HUGE
    holes = [os.lseek(file, index * HUGE, os.SEEK_HOLE) == index * HUGE for index in range(4)]
    assert holes == [not first <= index < first + count for index in range(4)]


@kernel_can_collapse
def test_no_page_ends_beyond_the_file(file):
    os.ftruncate(file, HUGE + 4096)
    huge_pages.allocate(file, 0, 2 * HUGE, HUGE + 4096)
    assert allocated_bytes(file) == HUGE


@kernel_can_collapse
def test_the_content_does_not_change(file):
    before = os.urandom(10_000)
    os.pwrite(file, before, HUGE - 5_000)
    huge_pages.allocate(file, 0, 2 * HUGE, LENGTH)
    content = os.pread(file, LENGTH, 0)
    assert content[HUGE - 5_000 : HUGE + 5_000] == before
    assert content.count(0) == LENGTH - len(before) + before.count(0)


def test_a_file_on_a_disk_is_left_alone(file, monkeypatch):
    monkeypatch.setattr(huge_pages, "_TMPFS_MAGIC", 0xEF53)
    huge_pages.allocate(file, 0, LENGTH, LENGTH)
    assert allocated_bytes(file) == 0


def test_what_cannot_be_mapped_is_left_to_the_write():
    descriptor = os.open(os.devnull, os.O_WRONLY)
    try:
        assert not huge_pages._collapse(descriptor, 0)
    finally:
        os.close(descriptor)
    huge_pages.allocate(-1, 0, HUGE, LENGTH)
