"""The header of `cnc.dat`: the documented example byte for byte, and both sides of each limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.cnc.cnc_header import HEADER_LENGTH, CncHeader

EXAMPLE = bytes.fromhex(
    "00 02 00 00 00 03 10 00  80 00 10 00 00 00 40 00"
    "00 00 10 00 00 00 10 00  00 e4 0b 54 02 00 00 00"
    "c1 46 51 d4 8b 01 00 00  99 ec 04 00 00 00 00 00"
)
"""The first 48 bytes of an older driver's file, as printed in Aeron's documentation."""

EXAMPLE_HEADER = CncHeader(
    to_driver_buffer_length=0x100300,
    to_clients_buffer_length=0x100080,
    counters_metadata_buffer_length=4 << 20,
    counters_values_buffer_length=1 << 20,
    error_log_buffer_length=1 << 20,
    client_liveness_timeout_ns=10_000_000_000,
    start_timestamp_ms=1_700_074_178_241,
    pid=322_713,
)


def as_header(content: bytes) -> np.ndarray:
    return np.frombuffer(content.ljust(HEADER_LENGTH, b"\0"), dtype=np.uint8)


def test_reads_the_documented_example() -> None:
    decoded = CncHeader.decode(as_header(EXAMPLE))
    assert decoded._replace(file_page_size=4096) == EXAMPLE_HEADER
    assert EXAMPLE_HEADER.file_length == 8_392_704
    assert EXAMPLE_HEADER.section_offsets[-1] == 8_389_632


def test_writes_the_documented_example() -> None:
    """Except for the version, which the driver stores last."""
    encoded = EXAMPLE_HEADER.encode()
    assert len(encoded) == HEADER_LENGTH
    assert encoded[:4] == bytes(4)
    assert encoded[4:48] == EXAMPLE[4:]
    assert encoded[48:52] == b"\0\x10\0\0"
    assert encoded[52:] == bytes(76)


def test_defaults_are_those_of_aeron() -> None:
    header = CncHeader().conclude()
    assert header.section_offsets == (
        128,
        1_049_472,
        2_098_176,
        35_652_608,
        44_041_216,
        48_235_520,
    )
    assert header.file_length == 48_238_592


LIMITS = [
    ("to_driver_buffer_length", (1 << 20) + 768, (1 << 19) + 768),
    ("to_driver_buffer_length", (1 << 21) + 768, (1 << 20) + 769),
    ("to_clients_buffer_length", (1 << 20) + 128, (1 << 19) + 128),
    ("to_clients_buffer_length", (1 << 21) + 128, (1 << 20) + 136),
    ("error_log_buffer_length", 4 << 20, (4 << 20) - 8),
    ("error_log_buffer_length", (4 << 20) + 8, (4 << 20) + 1),
    ("client_liveness_timeout_ns", 1, 0),
    ("file_page_size", 4096, 2048),
    ("file_page_size", 1 << 30, 1 << 31),
    ("file_page_size", 8192, 8191),
]


@pytest.mark.parametrize(("name", "accepted", "rejected"), LIMITS)
def test_a_limit_accepts_its_last_and_rejects_the_next(
    name: str, accepted: int, rejected: int
) -> None:
    CncHeader()._replace(**{name: accepted}).conclude()
    with pytest.raises(ConfigurationError, match=rf"{name}={rejected}\b"):
        CncHeader()._replace(**{name: rejected}).conclude()


@pytest.mark.parametrize(
    ("values", "accepted"),
    [(1 << 20, True), ((1 << 20) - 128, False), (400 << 20, True), ((500 << 20) + 128, False)],
)
def test_counters_have_room_for_at_least_8192(values: int, accepted: bool) -> None:
    header = CncHeader(
        counters_values_buffer_length=values, counters_metadata_buffer_length=4 * values
    )
    if accepted:
        header.conclude()
    else:
        with pytest.raises(ConfigurationError, match=f"counters_values_buffer_length={values}"):
            header.conclude()


def test_metadata_fits_values() -> None:
    with pytest.raises(ConfigurationError, match=r"expected 4 x 1048576"):
        CncHeader(counters_values_buffer_length=1 << 20).conclude()


def test_all_failures_are_reported_together() -> None:
    with pytest.raises(ConfigurationError) as caught:
        CncHeader(to_driver_buffer_length=5, error_log_buffer_length=5, file_page_size=5).conclude()
    text = str(caught.value)
    assert "to_driver_buffer_length=5" in text
    assert "error_log_buffer_length=5" in text
    assert "file_page_size=5" in text


@given(
    lengths=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=5, max_size=5),
    file_length=st.integers(0, 2**31),
)
def test_valid_sections_are_inside_the_file(lengths: list[int], file_length: int) -> None:
    header = CncHeader(*lengths)
    if not header.faults(file_length):
        offsets = header.section_offsets
        assert all(offset % 8 == 0 for offset in offsets)
        assert list(offsets) == sorted(offsets)
        assert offsets[-1] <= file_length


@pytest.mark.parametrize(("file_length", "usable"), [(48_235_520, True), (48_235_519, False)])
def test_sections_end_inside_the_file(file_length: int, usable: bool) -> None:
    assert (CncHeader().faults(file_length) == []) is usable
