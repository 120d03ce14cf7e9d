"""Distinct error log: each error once, with a count, within the bounds of the log."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.atomics import put_i32
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.cnc.error_log import (
    FURTHER_ERRORS,
    TEXT_LENGTH_MAX,
    TEXTS_PER_KIND_MAX,
    ErrorLog,
    ErrorObservation,
    read_errors,
)

LENGTH = 256


def test_counts_the_same_error_and_keeps_its_first_time() -> None:
    log, clock = np.zeros(LENGTH, dtype=np.uint8), ManualClock(epoch_ms=1_000)
    errors = ErrorLog(log, clock)
    assert errors.record(11, "no route")
    clock.advance(5_000_000)
    assert errors.record(12, "no space")
    clock.advance(5_000_000)
    assert errors.record(11, "no route")
    assert read_errors(log) == [
        ErrorObservation(2, 1_000, 1_010, "(11) no route"),
        ErrorObservation(1, 1_005, 1_005, "(12) no space"),
    ]


def test_lays_an_entry_out() -> None:
    log = np.zeros(LENGTH, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock(epoch_ms=258))
    errors.record(3, "é")
    errors.record(3, "x")
    assert log[:24].tobytes() == b"\x1e\0\0\0\x01\0\0\0" + b"\x02\x01\0\0\0\0\0\0" * 2
    assert log[24:30].tobytes() == "(3) é".encode()
    assert log[32:36].tobytes() == b"\x1d\0\0\0"


def test_same_text_under_another_code_is_another_error() -> None:
    log = np.zeros(LENGTH, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock())
    errors.record(3, "x")
    errors.record(4, "x")
    assert [error.text for error in read_errors(log)] == ["(3) x", "(4) x"]


def test_an_error_without_a_code_is_its_text_alone() -> None:
    log = np.zeros(LENGTH, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock(epoch_ms=1))
    errors.record(None, "x")
    errors.record(None, "x", "of a peer")
    assert read_errors(log) == [ErrorObservation(2, 1, 1, "x")]


def test_a_full_log_still_counts_known_errors() -> None:
    log = np.zeros(72, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock())
    assert errors.record(1, "first")
    assert not errors.record(2, "second, which is too long for the rest")
    assert not errors.record(2, "second, which is too long for the rest")
    assert errors.record(1, "first")
    assert errors.record(3, "now")
    assert [error.observation_count for error in read_errors(log)] == [2, 1]


def test_fills_its_log_to_the_last_byte() -> None:
    exact = np.zeros(24 + len("(1) 1234"), dtype=np.uint8)
    assert ErrorLog(exact, ManualClock()).record(1, "1234")
    assert read_errors(exact)[0].text == "(1) 1234"
    assert not ErrorLog(exact[:-1].copy(), ManualClock()).record(1, "1234")


def test_truncates_a_long_text() -> None:
    log = np.zeros(3 * TEXT_LENGTH_MAX, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock())
    assert errors.record(1, "x" * 100_000)
    assert len(read_errors(log)[0].text) == TEXT_LENGTH_MAX


def test_returns_only_errors_observed_since() -> None:
    log, clock = np.zeros(LENGTH, dtype=np.uint8), ManualClock(epoch_ms=1_000)
    errors = ErrorLog(log, clock)
    errors.record(1, "old")
    clock.advance(10_000_000)
    errors.record(2, "new")
    assert [error.text for error in read_errors(log, since_ms=1_001)] == ["(2) new"]
    assert len(read_errors(log, since_ms=1_000)) == 2


@pytest.mark.parametrize("length", [-1, 23, LENGTH - 31, 2**31 - 1])
def test_a_damaged_length_ends_the_reading(length: int) -> None:
    log = np.zeros(LENGTH, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock())
    errors.record(1, "one")
    errors.record(2, "two")
    put_i32(log, 32, length)
    assert [error.text for error in read_errors(log)] == ["(1) one"]


@given(content=st.binary(max_size=LENGTH))
def test_reads_any_bytes(content: bytes) -> None:
    log = np.frombuffer(content, dtype=np.uint8).copy()
    assert all(len(error.text) <= LENGTH for error in read_errors(log))


def test_a_flood_of_texts_from_peers_leaves_space_for_local_errors() -> None:
    log = np.zeros(4096, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock())
    for number in range(10_000):
        errors.record(3, f"peer says {number}", kind=f"publication {number % 500}")
    assert errors.record(4, "a local error of some length " + "x" * 500)
    found = read_errors(log)
    assert sum(error.observation_count for error in found) == 10_001
    foreign = [error for error in found if error.text.startswith("(3)")]
    assert sum(24 + len(error.text) for error in foreign) <= log.size // 2
    assert found[-2].text == FURTHER_ERRORS


def test_a_kind_has_a_few_texts_and_one_entry_for_the_rest() -> None:
    log = np.zeros(1 << 16, dtype=np.uint8)
    errors = ErrorLog(log, ManualClock())
    for number in range(100):
        errors.record(3, f"'{number}' is no channel", kind="AddPublication")
    errors.record(3, "'0' is no channel", kind="AddPublication")
    errors.record(3, "'0' is no control address", kind="AddDestination")
    errors.record(4, "'0' is no channel", kind="AddPublication")
    found = {error.text: error.observation_count for error in read_errors(log)}
    assert found == {
        "(3) '0' is no channel": 2,
        **{f"(3) '{number}' is no channel": 1 for number in range(1, TEXTS_PER_KIND_MAX)},
        "(3) further errors: AddPublication": 100 - TEXTS_PER_KIND_MAX,
        "(3) '0' is no control address": 1,
        "(4) '0' is no channel": 1,
    }


def test_the_memory_for_texts_is_bounded_by_the_log() -> None:
    errors = ErrorLog(np.zeros(1024, dtype=np.uint8), ManualClock())
    for number in range(2_000):
        errors.record(3, "x" * (number % 300), kind=f"kind {number}")
    assert len(errors._text_count_by_kind) <= 1024 // 32
