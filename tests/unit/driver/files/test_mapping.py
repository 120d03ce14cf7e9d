"""Mapped files: shared between mappings, rejected with a reason, and released safely."""

import errno
import os
import sys
from pathlib import Path

import pytest

from windtunnel.driver.base.atomics import address_of, put_i32
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files import mapping


def test_two_mappings_of_a_file_share_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made = mapping.create(path, 8192)
    other = mapping.open_file(path)
    put_i32(made.array, 4096, 77)
    assert other.array[4096] == 77
    assert (made.length, other.length, made.address) == (8192, 8192, address_of(made.array))
    made.flush()
    assert path.read_bytes()[4096] == 77
    made.close()
    other.close()


def test_a_read_only_mapping_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abcd" * 4)
    mapped = mapping.open_file(path, writable=False)
    assert bytes(mapped.array[:4]) == b"abcd"
    assert not mapped.array.flags.writeable
    mapped.close()


def test_a_file_that_exists_is_not_reused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"precious")
    with pytest.raises(StorageError, match="cannot create"):
        mapping.create(path, 4096)
    assert path.read_bytes() == b"precious"


def test_a_length_that_huge_pages_do_not_divide_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ftruncate(descriptor: int, length: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "ftruncate", ftruncate)
    monkeypatch.setattr(mapping, "_page_length", lambda _: 2 << 20)
    with pytest.raises(StorageError, match=r"2097152 bytes \(AERON_FILE_PAGE_SIZE"):
        mapping.create(tmp_path / "a", 4096)
    with pytest.raises(StorageError, match="a: Invalid argument"):
        mapping.create(tmp_path / "a", 2 << 20)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_truncated_before_it_is_mapped_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "ftruncate", lambda descriptor, length: None)
    with pytest.raises(StorageError, match=r"4096 bytes for .*a: another process truncated"):
        mapping.create(tmp_path / "a", 4096)
    path = tmp_path / "b"
    path.write_bytes(b"a")
    found = os.stat(path)
    stat = os.stat_result([*found[:6], 4096, *found[7:10]])
    monkeypatch.setattr(os, "fstat", lambda descriptor: stat)
    with pytest.raises(StorageError, match=r"map .*b: another process truncated"):
        mapping.open_file(path)


def test_a_file_is_not_created_through_a_link(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.symlink_to("target")
    with pytest.raises(StorageError, match="cannot create"):
        mapping.create(path, 4096)
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("content", [None, b""])
def test_a_file_that_cannot_be_mapped_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "nothing"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageError, match="nothing"):
        mapping.open_file(path)


def test_pages_outlive_a_mapping_that_is_still_referenced(tmp_path: Path) -> None:
    made = mapping.create(tmp_path / "a", 4096)
    kept = made.array[:8]
    made.close()
    made.close()
    kept[:] = 5
    assert (made.array.size, made.address) == (0, 0)
    assert (tmp_path / "a").read_bytes()[:8] == b"\5" * 8


def test_a_file_that_is_not_sparse_has_its_blocks(tmp_path: Path) -> None:
    made = mapping.create(tmp_path / "a", 1 << 20, sparse=False)
    assert made.path.stat().st_blocks * 512 >= 1 << 20
    made.close()


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python keeps one for each mapping")
def test_a_mapping_holds_no_descriptor(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    made = [mapping.create(tmp_path / str(number), 4096) for number in range(20)]
    made += [
        mapping.open_file(each.path, writable=bool(number % 2)) for number, each in enumerate(made)
    ]
    assert len(set(os.listdir("/proc/self/fd")) - before) < 10
    for each in made:
        each.flush()
        each.close()
