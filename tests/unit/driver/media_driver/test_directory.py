"""A driver's directory: taken, refused, saved from, and left alone."""

import re

import pytest

from driver.base.clock import ManualClock
from driver.base.errors import ActiveDriverError, StorageError
from driver.cnc import cnc_file
from driver.cnc.cnc_header import CncHeader
from driver.cnc.error_log import ErrorLog
from driver.media_driver.context import MIB, Context
from driver.media_driver.directory import (
    format_time,
    leave_directory,
    save_errors,
    take_directory,
)

HEADER = CncHeader(
    to_driver_buffer_length=MIB + 768,
    to_clients_buffer_length=MIB + 128,
    counters_metadata_buffer_length=4 * MIB,
    counters_values_buffer_length=MIB,
    error_log_buffer_length=4 * MIB,
    client_liveness_timeout_ns=10**10,
    start_timestamp_ms=1,
    pid=1,
    file_page_size=4096,
)


@pytest.fixture
def clock():
    return ManualClock()


def leave_behind(directory, clock, *errors):
    """What a driver leaves that was killed: its file, and the errors it had noted."""
    directory.mkdir(exist_ok=True)
    cnc = cnc_file.create(directory, HEADER, sparse=True)
    log = ErrorLog(cnc.error_log, clock)
    for code, text in errors:
        log.record(code, text)
    cnc.set_ready(clock.now_ms())
    cnc.close()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_directory_has_its_folders(tmp_path, clock):
    told = []
    take_directory(Context(dir=tmp_path / "a" / "b", dir_warn_if_exists=True), clock, told.append)
    assert names_in(tmp_path / "a" / "b") == ["images", "publications"]
    assert told == []


def test_an_old_directory_is_told_of_when_asked(tmp_path, clock):
    context = Context(dir=tmp_path / "old", dir_warn_if_exists=True)
    context.dir.mkdir()
    told = []
    take_directory(context, clock, told.append)
    assert told == [f"WARNING: {context.dir} exists"]


def test_the_living_are_refused_and_the_silent_are_not(tmp_path, clock):
    context = Context(dir=tmp_path / "old", driver_timeout_ms=5_000)
    leave_behind(context.dir, clock)
    clock.advance(5_000 * 10**6)
    with pytest.raises(ActiveDriverError, match=r"active media driver detected: .*cnc\.dat"):
        take_directory(context, clock)
    clock.advance(10**6)
    take_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]


def test_delete_on_start_asks_nobody(tmp_path, clock):
    context = Context(dir=tmp_path / "old", dir_delete_on_start=True)
    leave_behind(context.dir, clock, (11, "noted"))
    take_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]
    assert names_in(tmp_path) == ["old"]


def test_errors_of_the_dead_are_saved_beside_the_directory(tmp_path, clock):
    context = Context(dir=tmp_path / "old")
    leave_behind(context.dir, clock, (11, "one thing"), (9, "another"), (11, "one thing"))
    began = format_time(clock.now_ms())
    clock.advance(20_000 * 10**6)
    told = []
    take_directory(context, clock, told.append)
    (log,) = [name for name in names_in(tmp_path) if name != "old"]
    assert re.fullmatch(r"old-\d{4}-\d\d-\d\d \d\d-\d\d-\d\d\.\d{3}[+-]\d{4}-error\.log", log)
    assert told == [f"WARNING: Existing errors saved to: {tmp_path / log}"]
    assert (tmp_path / log).read_text() == (
        f"***\n2 observations from {began} to {began} for:\n (11) one thing\n"
        f"***\n1 observations from {began} to {began} for:\n (9) another\n"
        "\n2 distinct errors observed.\n"
    )


def test_who_noted_nothing_leaves_no_errors(tmp_path, clock):
    leave_behind(tmp_path / "old", clock)
    assert save_errors(tmp_path / "old", clock) is None
    assert save_errors(tmp_path / "none", clock) is None
    assert names_in(tmp_path) == ["old"]


def test_a_file_that_nobody_can_read_is_refused_and_kept(tmp_path, clock):
    context = Context(dir=tmp_path / "old")
    context.dir.mkdir()
    (context.dir / "cnc.dat").write_bytes(b"\xff" * 8192)
    with pytest.raises(StorageError):
        take_directory(context, clock)
    assert (context.dir / "cnc.dat").exists()


def test_a_directory_of_somebody_else_is_left_alone(tmp_path, clock):
    context = Context(dir=tmp_path / "home")
    context.dir.mkdir()
    (context.dir / "thesis.txt").write_text("dear")
    with pytest.raises(StorageError, match="none of a driver's"):
        take_directory(context, clock)
    assert (context.dir / "thesis.txt").read_text() == "dear"
    (context.dir / "images").mkdir()
    take_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]


def test_a_link_leads_to_the_directory(tmp_path, clock):
    leave_behind(tmp_path / "real", ManualClock(epoch_ms=1))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    clock.advance(10**10)
    take_directory(Context(dir=tmp_path / "link", driver_timeout_ms=1), clock)
    assert names_in(tmp_path / "real") == ["images", "publications"]


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path, clock):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="AERON_DIR"):
        take_directory(Context(dir=tmp_path / "file"), clock)
    with pytest.raises(StorageError, match="AERON_DIR"):
        take_directory(Context(dir=tmp_path / "file" / "below"), clock)


def test_a_directory_stays_unless_the_settings_say_otherwise(tmp_path, clock):
    context = Context(dir=tmp_path / "old")
    take_directory(context, clock)
    leave_directory(context)
    assert context.dir.is_dir()
    leave_directory(Context(dir=tmp_path / "old", dir_delete_on_shutdown=True))
    assert not context.dir.exists()


def test_a_directory_behind_a_link_is_left_too(tmp_path, clock):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    context = Context(dir=tmp_path / "link", dir_delete_on_shutdown=True)
    take_directory(context, clock)
    assert (tmp_path / "real").is_dir()
    leave_directory(context)
    assert not (tmp_path / "real").exists()


def test_a_time_that_no_calendar_has_is_a_number():
    assert format_time(1 << 62) == f"{1 << 62} ms"
    assert format_time(-(1 << 62)) == f"{-(1 << 62)} ms"
