"""Captures compressed with gzip are read like plain ones, within limits."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from windtunnel.harness.artifact import compressed_file
from windtunnel.harness.artifact.compressed_file import (
    CompressionError,
    compress_file,
    map_plain_bytes,
)
from windtunnel.harness.artifact.regular_file import UnsafeFileError
from windtunnel.harness.artifact.run_dir import RunDir

CONTENT = bytes(range(256)) * 5000


def test_a_compressed_file_has_the_same_bytes(tmp_path: Path) -> None:
    plain = tmp_path / "a.pcap"
    plain.write_bytes(CONTENT)
    before = bytes(map_plain_bytes(plain))
    packed = compress_file(plain)
    assert [each.name for each in tmp_path.iterdir()] == ["a.pcap.gz"]
    assert packed.stat().st_size < len(CONTENT) // 10
    assert gzip.decompress(packed.read_bytes()) == CONTENT == before
    assert bytes(map_plain_bytes(packed)) == CONTENT


def test_equal_files_are_compressed_to_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(CONTENT)
    first, second = (compress_file(tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


def test_an_empty_file_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert len(map_plain_bytes(compress_file(tmp_path / "a"))) == 0


def test_a_file_may_not_decompress_to_more_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(1000))
    packed = compress_file(tmp_path / "a")
    assert len(map_plain_bytes(packed, max_bytes=1000)) == 1000
    with pytest.raises(CompressionError, match="expected at most 999 bytes"):
        map_plain_bytes(packed, max_bytes=999)


def test_a_sparse_file_has_the_same_limit_and_another_has_none(tmp_path: Path) -> None:
    sparse, plain = tmp_path / "sparse", tmp_path / "plain"
    with sparse.open("wb") as file:
        file.write(b"head")
        file.truncate(1 << 20)
    assert len(map_plain_bytes(sparse, max_bytes=1 << 20)) == 1 << 20
    with pytest.raises(CompressionError, match="at most 1048575 bytes in a sparse file, found"):
        map_plain_bytes(sparse, max_bytes=(1 << 20) - 1)
    plain.write_bytes(b"head" * 10_000)
    assert len(map_plain_bytes(plain, max_bytes=100)) == 40_000


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_file_is_an_error(damage: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CONTENT)
    packed = compress_file(tmp_path / "a")
    whole = packed.read_bytes()
    flipped = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    packed.write_bytes({"cut": whole[:-9], "flipped": flipped, "empty": whole[:10]}[damage])
    with pytest.raises(CompressionError, match="cannot be decompressed"):
        map_plain_bytes(packed)


def test_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CONTENT)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(UnsafeFileError):
        compress_file(tmp_path / "link")
    with pytest.raises(UnsafeFileError):
        map_plain_bytes(tmp_path / "link")


def test_a_planted_name_of_the_new_file_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("secret")
    (tmp_path / "a").write_bytes(CONTENT)
    (tmp_path / ".a.gz.new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        compress_file(tmp_path / "a")
    assert victim.read_text() == "secret"
    assert (tmp_path / "a").read_bytes() == CONTENT


def test_a_file_that_could_not_be_read_back_stays_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(CONTENT)
    monkeypatch.setattr(compressed_file, "PLAIN_BYTES_MAX", len(CONTENT) - 1)
    assert compress_file(tmp_path / "a") == tmp_path / "a"
    monkeypatch.undo()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compressed_file, "_require_equal", fail)
    with pytest.raises(OSError, match="No space"):
        compress_file(tmp_path / "a")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_run_folder_has_the_capture_that_exists(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.make()
    assert run.capture("a").name == "a.pcap"
    run.capture("a").write_bytes(CONTENT)
    compress_file(run.capture("a"))
    assert run.capture("a").name == "a.pcap.gz"
    assert np.array_equal(map_plain_bytes(run.capture("a")), np.frombuffer(CONTENT, np.uint8))
