"""The file of a log: created completely or not at all, and validated before use."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from windtunnel.driver.base.errors import ConfigurationError, StorageError
from windtunnel.driver.logbuffer import appender, descriptor, log_buffer
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.logbuffer.parameters import LogParameters

TERM_LENGTH = 65536


def parameters(**changes: int) -> LogParameters:
    values = {"page_size": 4096, "mtu_length": 1408} | changes
    return LogParameters(
        type=descriptor.EXCLUSIVE_PUBLICATION,
        correlation_id=4,
        session_id=5,
        stream_id=6,
        initial_term_id=-3,
        term_length=TERM_LENGTH,
        **values,
    )


@pytest.mark.parametrize("sparse", [True, False])
def test_two_mappings_of_a_file_are_one_log(tmp_path: Path, sparse: bool) -> None:
    path = tmp_path / "4.logbuffer"
    source = np.ones(100, dtype=np.uint8)
    with LogBuffer.create(path, parameters(), sparse=sparse) as made, LogBuffer.map(path) as mapped:
        assert path.stat().st_size == made.length == mapped.length == 200_704
        assert (made.term_length, made.bits, made.mtu_length) == (TERM_LENGTH, 16, 1408)
        assert (mapped.initial_term_id, mapped.type) == (-3, descriptor.EXCLUSIVE_PUBLICATION)
        state = appender.attach(mapped.log, mapped.meta_at)
        assert (state[0].log_address, state[0].log_length) == (mapped.address, mapped.length)
        assert appender.offer(state, mapped.log, 1 << 40, source, 0, 100, 0) == 160
        assert made.producer_position() == 160
        assert bytes(made.log[32:132]) == bytes(source)
        assert made.base(2 * TERM_LENGTH + 5) == 2 * TERM_LENGTH
        assert made.base(3 * TERM_LENGTH) == 0


def test_every_page_of_a_file_that_is_not_sparse_is_allocated(tmp_path: Path) -> None:
    with LogBuffer.create(tmp_path / "a", parameters(), sparse=False) as made:
        assert made.path.stat().st_blocks * 512 >= made.length


def test_large_pages_leave_slack_before_the_metadata(tmp_path: Path) -> None:
    page = 1 << 20
    with LogBuffer.create(tmp_path / "a", parameters(page_size=page)) as made:
        assert (made.length, made.meta_at) == (page, page - 4096)
        assert descriptor.page_size(made.log, made.meta_at) == page


def test_too_little_space_is_rejected_before_a_file_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def statvfs(path: object) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=48, f_frsize=4096)

    monkeypatch.setattr(os, "statvfs", statvfs)
    assert log_buffer.usable_bytes(tmp_path) == 196_608
    with pytest.raises(StorageError, match="length=200704 usable=196608"):
        LogBuffer.create(tmp_path / "a", parameters())
    assert list(tmp_path.iterdir()) == []
    LogBuffer.create(tmp_path / "a", parameters(), check_storage=False).close()


def test_exactly_enough_space_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = SimpleNamespace(f_bavail=49, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: room)
    LogBuffer.create(tmp_path / "a", parameters()).close()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere"):
        LogBuffer.create(tmp_path / "nowhere" / "a", parameters())


def test_invalid_parameters_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="mtu 1409"):
        LogBuffer.create(tmp_path / "a", parameters(mtu_length=1409))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_neither_reused_nor_removed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"precious")
    with pytest.raises(StorageError):
        LogBuffer.create(path, parameters())
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("length", [1, 4095, 4096, 200_703, 200_705])
def test_a_file_of_another_length_is_not_a_log(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a"
    LogBuffer.create(path, parameters()).close()
    os.truncate(path, length)
    with pytest.raises(StorageError, match="is not a log buffer"):
        LogBuffer.map(path)


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    made = LogBuffer.create(tmp_path / "a", parameters())
    made.close()
    made.close()
    assert (made.log.size, made.address) == (0, 0)
