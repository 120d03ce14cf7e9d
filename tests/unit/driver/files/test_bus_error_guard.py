"""Loss of mapped pages, in processes that would otherwise end by SIGBUS."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from windtunnel.driver.files import bus_error_guard

ROOT = Path(__file__).resolve().parents[4]
PRELUDE = """
import os, sys
from pathlib import Path
from windtunnel.driver.files import bus_error_guard, mapping
path = Path(sys.argv[1])
mapped = mapping.create(path, 64 * 4096)
mapped.array[:] = 7
"""


def child(tmp_path, text):
    """Run Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + text, str(tmp_path / "mapped")],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("access", ["print(mapped.array[9 * 4096])", "mapped.array[9 * 4096] = 3"])
def test_a_truncated_file_ends_a_process_without_the_guard(tmp_path, access):
    ended = child(tmp_path, "os.truncate(path, 8 * 4096)\n" + access)
    assert ended.returncode == -signal.SIGBUS


def test_a_truncated_file_costs_its_mapping_pages_of_zeros(tmp_path):
    ended = child(tmp_path, """
bus_error_guard.install()
bus_error_guard.install()
os.truncate(path, 8 * 4096)
array = mapped.array
assert array[8 * 4096 - 1] == 7 and mapped.lost_pages == 0
assert array[8 * 4096] == 0 and mapped.lost_pages == 1
array[9 * 4096 + 5] = 3
assert array[9 * 4096 + 5] == 3 and array[9 * 4096 + 6] == 0 and mapped.lost_pages == 2
assert int(array.sum()) == 7 * 8 * 4096 + 3 and mapped.lost_pages == 56
assert bus_error_guard.lost_pages_total() == 56
del array
mapped.close()
other = mapping.create(path.with_name("other"), 4096)
assert other.lost_pages == 0 and mapped.lost_pages == 0
assert bus_error_guard.lost_pages_total() == 56
""")  # fmt: skip
    assert ended.returncode == 0, ended.stderr


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("on_read", "access", "kept"), [
    (False, "array[20 * 4096] = 3", 0),
    (False, "array[20 * 4096] += 0", 7),
    (True, "array[20 * 4096].item()", 0),
    (True, "array[40 * 4096] = 3", 7),
    (True, "array[40 * 4096].item()", 7),
])  # fmt: skip
def test_pages_that_are_replaced_together_hide_later_writes(tmp_path, on_read, access, kept):
    ended = child(tmp_path, f"""
bus_error_guard.install()
mapped.replace_together(32 * 4096, on_read={on_read})
os.truncate(path, 16 * 4096)
array = mapped.array
{access}
assert mapped.lost_pages == 1
assert array[0] == array[16 * 4096 - 1] == {kept}, array[0]
array[0] = 9
assert path.read_bytes()[0] == (9 if {kept} else 7)
""")  # fmt: skip
    assert ended.returncode == 0, ended.stderr


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(("is_driver", "reads_first"), [(1, 0), (1, 1), (0, 0)])
def test_a_frame_over_a_lost_page_is_not_committed(tmp_path, is_driver, reads_first):
    """A driver also reads a page before it writes a frame that begins on the page before."""
    ended = child(tmp_path, f"""
import numpy as np
from tests.unit.driver.logbuffer.test_log_buffer import parameters
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.logbuffer import rebuilder
bus_error_guard.install()
log = path.with_name("log")
packet = np.full(4096, 1, np.uint8)
created = LogBuffer.create(log, parameters())
mapped = LogBuffer.map(log)
made, other = (created, mapped) if {is_driver} else (mapped, created)
os.truncate(log, 4096)
if {reads_first}:
    made.log[4096].item()
rebuilder.insert(made.log, 0, 2048, packet, 0, 4096)
assert made.lost_pages and not other.log[2048:2056].any()
os.truncate(log, made.length)
# Later frames are not committed, either.
rebuilder.insert(made.log, 0, 0, packet, 0, 64)
assert not other.log[:64].any()
""")  # fmt: skip
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def huge_pages():
    """Permit the kernel to allocate huge pages of 2 MiB on demand."""
    limit = Path("/proc/sys/vm/nr_overcommit_hugepages")
    before = limit.read_text()
    try:
        limit.write_text("16")
    except OSError as error:
        pytest.skip(f"huge pages cannot be permitted: {error.strerror} (run as root)")
    yield
    limit.write_text(before)


@pytest.mark.parametrize(("together", "read", "kept"), [
    ("", "", "7, 7, 0, 0"),
    ("mapped.replace_together(4 * MIB + 4096, on_read=False)", "", "9, 0, 0, 0"),
    ("mapped.replace_together(4 * MIB + 4096, on_read=True)", "array[5 * MIB]", "9, 0, 0, 0"),
])  # fmt: skip
def test_whole_huge_pages_are_replaced(tmp_path, huge_pages, together, read, kept):
    ended = child(tmp_path, f"""
bus_error_guard.install()
MIB = 1 << 20
file = os.memfd_create("huge", os.MFD_HUGETLB | os.MFD_HUGE_2MB)
os.ftruncate(file, 8 * MIB)
try:
    mapped = mapping.open_file(Path(f"/proc/self/fd/{{file}}"))
except mapping.StorageError as error:
    if "Cannot allocate memory" not in str(error): raise
    print("no free huge pages")
    sys.exit(0)
array = mapped.array
array[:] = 7
{together}
os.ftruncate(file, 4 * MIB)
{read}
array[4 * MIB + 5] = 3
if mapped.lost_pages == 1 and array[0] == 0:
    array[0] = 9
found = array[0], array[2 * MIB], array[4 * MIB], array[6 * MIB + 4096]
assert found == ({kept}), found
assert array[4 * MIB + 5] == 3
assert mapped.lost_pages == 2, mapped.lost_pages
assert os.pread(file, 1, 0) == bytes([7])
del array
mapped.close()
""")  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    if ended.stdout:
        pytest.skip(ended.stdout.strip())


def test_threads_without_the_gil_survive(tmp_path):
    ended = child(tmp_path, """
import ctypes, threading
bus_error_guard.install()
os.truncate(path, 0)
libc = ctypes.CDLL(None)
threads = [
    threading.Thread(target=libc.memset, args=(ctypes.c_void_p(mapped.address), 5, 64 * 4096))
    for _ in range(4)
]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert mapped.lost_pages >= 64
assert bytes(mapped.array) == bytes([5]) * 64 * 4096 or mapped.lost_pages > 64
""")  # fmt: skip
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("text", [
    "memory = __import__('mmap').mmap(os.open(path, os.O_RDWR), 4096)\n"
    "os.truncate(path, 0)\nmemory[0]",
    "os.kill(os.getpid(), 7)",
    "os.truncate(path, 0)\naddress = mapped.address\nbus_error_guard.unregister(mapped._row)\n"
    "__import__('ctypes').c_uint8.from_address(address).value",
])  # fmt: skip
def test_other_bus_errors_end_the_process_as_before(tmp_path, text):
    ended = child(tmp_path, "bus_error_guard.install()\n" + text)
    assert ended.returncode == -signal.SIGBUS


def test_a_previous_handler_is_called_for_other_bus_errors(tmp_path):
    ended = child(tmp_path, """
import faulthandler
faulthandler.enable()
bus_error_guard.install()
os.kill(os.getpid(), 7)
""")  # fmt: skip
    assert ended.returncode == -signal.SIGBUS
    assert "Bus error" in ended.stderr


def test_a_mapping_that_is_still_referenced_after_close_stays_protected(tmp_path):
    ended = child(tmp_path, """
bus_error_guard.install()
array = mapped.array
mapped.close()
os.truncate(path, 0)
assert array[0] == 0
assert bus_error_guard.lost_pages_total() == mapped.lost_pages == 1
del array
assert mapped.lost_pages == 0
""")  # fmt: skip
    assert ended.returncode == 0, ended.stderr


class CollectingRows(list):
    """Free rows. A mapping is collected while another one takes a row from them."""

    def pop(self):
        self.pop = super().pop
        bus_error_guard.unregister(self.pop())
        return super().pop()


def test_a_mapping_can_be_collected_while_another_one_is_registered(monkeypatch):
    monkeypatch.setattr(bus_error_guard, "_free_rows", CollectingRows([1, 2, 3]))
    registered = []
    thread = threading.Thread(
        target=lambda: registered.append(bus_error_guard.register(4096, 4096)), daemon=True
    )
    thread.start()
    thread.join(timeout=20)
    assert registered == [3]
    bus_error_guard.unregister(3)
