"""Records are read whole, up to a limit."""

from pathlib import Path

import numpy as np
import pytest

from windtunnel.harness.artifact import records
from windtunnel.harness.artifact.regular_file import UnsafeFileError

PAIR = np.dtype([("first", "<i4"), ("second", "<i4")])


def test_complete_records_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert records.read_records(file, PAIR) is None
    file.write_bytes(bytes(8) + b"\1" + bytes(7) + b"torn")
    found = records.read_records(file, PAIR)
    assert found is not None
    assert found["first"].tolist() == [0, 1]
    assert records.has_torn_tail(file, PAIR)


def test_a_file_that_would_not_fit_into_memory_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(16))
    found = records.read_records(file, PAIR, max_bytes=16)
    assert found is not None
    assert len(found) == 2
    with pytest.raises(UnsafeFileError, match="expected at most 15 bytes, found 16"):
        records.read_records(file, PAIR, max_bytes=15)
    with file.open("r+b") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(UnsafeFileError, match="expected at most 1073741824 bytes, found"):
        records.read_records(file, PAIR)
