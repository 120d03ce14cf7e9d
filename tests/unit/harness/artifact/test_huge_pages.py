"""A process without huge pages uses only the memory that it writes."""

import subprocess
import sys

SCRIPT = """
from windtunnel.harness.artifact.huge_pages import avoid_huge_pages
avoid_huge_pages()
import numpy as np

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

table = np.zeros(64 << 20, np.uint8)
before = resident()
table[:: 2 << 20] = 1
print(resident() - before)
"""


def test_a_write_uses_a_small_page():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    # 32 places, 2 MiB apart, are 128 KiB of small pages.
    assert int(done.stdout) < 1 << 20
