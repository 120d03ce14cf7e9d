"""The tables that the SIGBUS handler of `bus_error_guard` reads and writes, and their symbols."""

import numpy as np

ROWS = 1 << 15
"""Maximum number of registered mappings. Additional mappings are not protected."""
BEGIN, END, LOST_PAGES = 0, 1, 2
WRITE_END, READ_END = 3, 4
"""Words with the end of the pages that are replaced together when a write or a read fails."""
PAGE_LENGTH = 5
"""Word with the length of a page, which is larger on a file system of huge pages."""
ROW_WORDS = 6
ACTION_LENGTH = 256
"""Buffer length that is enough for `struct sigaction` in any libc on 64-bit Linux (152 in glibc).
"""
MAPPINGS, TOTAL = "windtunnel_mappings", "windtunnel_lost_pages"
PREVIOUS_ACTION = "windtunnel_previous_action"

rows = np.zeros((ROWS, ROW_WORDS), dtype=np.int64)
total = np.zeros(1, dtype=np.int64)
previous = np.zeros(ACTION_LENGTH, dtype=np.uint8)
SYMBOLS: dict[str, np.ndarray] = {MAPPINGS: rows, TOTAL: total, PREVIOUS_ACTION: previous}
