"""The check of a library before it is changed."""

import struct

import pytest

from windtunnel.harness.simulator.real_driver.library import Library, find_library, read_slots
from windtunnel.harness.simulator.support import Unsupported

pyaeron = pytest.importorskip("pyaeron")


@pytest.fixture(scope="module")
def data():
    return find_library().read_bytes()


def test_finds_the_slots_of_system_calls_and_own_functions(data):
    slots = read_slots(data, "lib")
    for name in ("clock_gettime", "recvmmsg", "socket", "aeron_randomised_int32"):
        assert slots[name], name
    assert all(slot % 8 == 0 for found in slots.values() for slot in found)
    places = [slot for found in slots.values() for slot in found]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, b"PK", "64-bit little-endian ELF"),
        (4, b"\x01", "64-bit little-endian ELF"),
        (18, struct.pack("<H", 183), "x86-64, found ELF machine 183"),
        (32, struct.pack("<Q", 1 << 60), "damaged"),
        (56, struct.pack("<H", 0), "no dynamic section"),
    ],
)
def test_refuses_another_format(data, at, value, reason):
    changed = data[:at] + value + data[at + len(value) :]
    with pytest.raises(Unsupported, match=reason):
        read_slots(changed, "lib")


def test_refuses_a_truncated_library(data):
    with pytest.raises(Unsupported, match="damaged"):
        read_slots(data[:4096], "lib")


def test_refuses_slots_that_are_bound_at_once(data):
    tag = struct.pack("<qQ", 23, 0)[:8]  # DT_JMPREL, whose entry is followed by others
    (dynamic,) = (
        at
        for at in range(0, len(data) - 16, 8)
        if data[at : at + 8] == struct.pack("<q", 0x6FFFFFF9)
        and data[at + 16 : at + 32] == bytes(16)
    )
    assert tag in data
    bound = data[:dynamic] + struct.pack("<qQ", 30, 8) + data[dynamic + 16 :]
    with pytest.raises(Unsupported, match="BIND_NOW"):
        read_slots(bound, "lib")


def test_refuses_a_library_without_an_expected_call():
    with pytest.raises(Unsupported, match="expected calls to no_such_call"):
        Library(find_library(), frozenset({"no_such_call", "socket"}), frozenset())


def test_refuses_a_library_without_an_expected_function():
    with pytest.raises(Unsupported, match="does not export aeron_no_such"):
        Library(find_library(), frozenset({"socket"}), frozenset({"aeron_no_such"}))
