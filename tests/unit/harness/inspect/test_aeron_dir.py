"""A driver's files in all states: missing, incomplete, truncated, hostile, changing."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.harness.inspect.driver_folder import (
    METADATA_AT,
    put_counter,
    put_error,
    small_cnc,
    stream_key,
    unpack_loss_report,
    write,
)
from windtunnel.harness.cli.root import main
from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError
from windtunnel.harness.inspect import aeron_dir
from windtunnel.harness.inspect.aeron_dir import (
    NothingThereError,
    default_directory,
    read_driver,
    read_losses,
)
from windtunnel.harness.inspect.driver_state import (
    ALIVE,
    CLOSED,
    SILENT,
    STARTING,
    driver_state,
    version_text,
)

CHANNEL = "aeron:udp?endpoint=localhost:24325"


def busy_cnc() -> bytearray:
    content = small_cnc()
    for counter_id, type_id in enumerate((0, 1, 2, 4, 6, 12)):
        key = stream_key(5, 77, 1001, CHANNEL)
        put_counter(content, counter_id, type_id=type_id, label=f"x: {CHANNEL} @0", key=key)
    at = put_error(content, 0, 3, 100, "went up")
    put_error(content, at, 1, 300, "again")
    return content


def test_the_default_directory_is_aerons(monkeypatch):
    monkeypatch.setenv("USER", "anna")
    assert default_directory().name == "aeron-anna"
    if Path("/dev/shm").is_dir():
        assert default_directory().parent == Path("/dev/shm")
    monkeypatch.delenv("USER")
    assert default_directory().name.startswith("aeron-")


def test_reads_only_the_used_part(tmp_path, monkeypatch):
    read = []
    copy = aeron_dir._copy

    def noted(descriptor, buf, at, length):
        read.append(length)
        copy(descriptor, buf, at, length)

    content = small_cnc()
    put_counter(content, 0, type_id=0, label="Bytes sent", value=7)
    write(tmp_path, content)
    with (tmp_path / "cnc.dat").open("r+b") as file:
        lengths = (1 << 20) + 768, (1 << 20) + 128, 32 << 20, 8 << 20, 4 << 20
        file.write(struct.pack("<6i", 512, *lengths))
        file.truncate(128 + sum(lengths))
        file.seek(128 + sum(lengths[:2]))
        file.write(content[METADATA_AT : METADATA_AT + 512])
    monkeypatch.setattr(aeron_dir, "_copy", noted)
    assert [each.label for each in read_driver(tmp_path).counters()] == ["Bytes sent"]
    assert sum(read) < 1 << 20


def test_a_missing_file_is_distinguished_from_an_unreadable_one(tmp_path):
    with pytest.raises(NothingThereError, match=r"no driver: .*cnc\.dat does not exist"):
        read_driver(tmp_path)
    with pytest.raises(NothingThereError, match="no loss report"):
        read_losses(tmp_path)
    for unfinished in (b"", bytes(100), small_cnc(version=0)):
        with pytest.raises(NothingThereError, match="has not initialized"):
            read_driver(write(tmp_path, unfinished))
    with pytest.raises(CncFileError, match=r"cnc\.dat: .*expected major version 0"):
        read_driver(write(tmp_path, small_cnc(version=1 << 16)))
    with pytest.raises(CncFileError, match="truncated"):
        read_driver(write(tmp_path, small_cnc()[:-1]))
    assert read_driver(write(tmp_path, small_cnc())).pid == 4711


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    write(tmp_path, small_cnc())
    os.truncate(tmp_path / "cnc.dat", 1 << 31)
    with pytest.raises(CncFileError, match="expected at most"):
        read_driver(tmp_path)
    os.truncate(tmp_path / "cnc.dat", (1 << 31) - 1)
    assert read_driver(tmp_path).pid == 4711


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_a_special_file_neither_blocks_nor_crashes(tmp_path, make):
    make(tmp_path / "cnc.dat")
    with pytest.raises(NothingThereError, match="expected a regular file, found a"):
        read_driver(tmp_path)


def test_a_file_that_shrinks_while_it_is_read_ends_in_zeros(tmp_path, monkeypatch):
    write(tmp_path, busy_cnc())
    copy = aeron_dir._copy

    def shrinking(descriptor, buf, at, length):
        if at:
            os.truncate(tmp_path / "cnc.dat", 128)
        copy(descriptor, buf, at, length)

    monkeypatch.setattr(aeron_dir, "_copy", shrinking)
    assert read_driver(tmp_path).counters() == []


@pytest.mark.parametrize(
    ("heartbeat_ms", "state", "age_ms"),
    [(50_000, ALIVE, 10_000), (49_999, SILENT, 10_001), (-1, CLOSED, -1), (0, STARTING, -1)],
)
def test_a_heartbeat_shows_whether_a_driver_is_alive(tmp_path, heartbeat_ms, state, age_ms):
    cnc = read_driver(write(tmp_path, small_cnc(heartbeat_ms=heartbeat_ms)))
    found = driver_state(cnc, 60_000)
    assert (found.state, found.heartbeat_age_ms) == (state, age_ms)
    assert found.is_alive == (state == ALIVE)
    assert (found.software, found.software_version) == ("", "")


def test_a_version_is_three_bytes():
    assert version_text(79_104) == "1.53.0"
    assert version_text(512) == "0.2.0"


def test_the_valid_part_of_a_damaged_loss_report_is_read(tmp_path):
    folder = unpack_loss_report("reliable", tmp_path)
    report = folder / "loss-report.dat"
    whole = read_losses(folder)
    assert (len(whole.losses), whole.problem) == (1, "")
    content = bytearray(report.read_bytes())
    content[128:256] = content[:128]
    struct.pack_into("<i", content, 128 + 40, -1)
    report.write_bytes(content)
    damaged = read_losses(folder)
    assert damaged.losses == whole.losses
    assert "entry 1 at 128" in damaged.problem


TOOLS = ("stat", "streams", "backlog", "errors", "driver-info")


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(
        st.tuples(
            st.integers(0, len(small_cnc()) // 4 - 1), st.integers(-(1 << 31), (1 << 31) - 1)
        ),
        max_size=12,
    ),
    cut=st.none() | st.integers(0, len(small_cnc())),
    tool=st.sampled_from(TOOLS),
    as_json=st.booleans(),
)
def test_arbitrary_files_have_a_result(tmp_path_factory, changes, cut, tool, as_json):
    content = busy_cnc()
    for word, value in changes:
        struct.pack_into("<i", content, word * 4, value)
    folder = write(tmp_path_factory.mktemp("any"), content[:cut])
    assert main([tool, "--dir", str(folder), *(["--json"] if as_json else [])]) in (0, 1, 2)


@settings(max_examples=100, deadline=None)
@given(
    at=st.integers(0, 40), value=st.binary(min_size=4, max_size=4), cut=st.none() | st.integers(0)
)
def test_arbitrary_loss_reports_have_a_result(tmp_path_factory, at, value, cut):
    folder = unpack_loss_report("clean", tmp_path_factory.mktemp("any"))
    content = bytearray((folder / "loss-report.dat").read_bytes()[:256])
    content[at * 4 : at * 4 + 4] = value
    (folder / "loss-report.dat").write_bytes(content[:cut])
    assert main(["loss", "--dir", str(folder)]) in (0, 2)
