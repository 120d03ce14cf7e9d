"""A driver's directory: created, rejected, replaced and deleted."""

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.base.errors import ActiveDriverError, StorageError
from windtunnel.driver.cnc import cnc_file
from windtunnel.driver.cnc.cnc_header import CncHeader
from windtunnel.driver.cnc.error_log import ErrorLog
from windtunnel.driver.media_driver.context import MIB, Context
from windtunnel.driver.media_driver.directory import (
    claim_directory,
    format_time,
    release_directory,
    save_errors,
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
    """Create what a killed driver leaves: its CnC file with errors in the log."""
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
    warnings = []
    claim_directory(
        Context(dir=tmp_path / "a" / "b", dir_warn_if_exists=True), clock, warnings.append
    )
    assert names_in(tmp_path / "a" / "b") == ["images", "publications"]
    assert warnings == []


def test_an_existing_directory_is_reported_if_the_setting_is_on(tmp_path, clock):
    context = Context(dir=tmp_path / "old", dir_warn_if_exists=True)
    context.dir.mkdir()
    warnings = []
    claim_directory(context, clock, warnings.append)
    assert warnings == [f"WARNING: {context.dir} exists"]


def test_the_directory_of_an_active_driver_is_rejected_and_of_a_dead_one_reused(tmp_path, clock):
    context = Context(dir=tmp_path / "old", driver_timeout_ms=5_000)
    leave_behind(context.dir, clock)
    clock.advance(5_000 * 10**6)
    with pytest.raises(ActiveDriverError, match=r"active media driver detected: .*cnc\.dat"):
        claim_directory(context, clock)
    clock.advance(10**6)
    claim_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]


def test_delete_on_start_ignores_an_active_driver(tmp_path, clock):
    context = Context(dir=tmp_path / "old", dir_delete_on_start=True)
    leave_behind(context.dir, clock, (11, "noted"))
    claim_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]
    assert names_in(tmp_path) == ["old"]


def test_errors_of_a_dead_driver_are_saved_beside_the_directory(tmp_path, clock):
    context = Context(dir=tmp_path / "old")
    leave_behind(context.dir, clock, (11, "one thing"), (9, "another"), (11, "one thing"))
    began = format_time(clock.now_ms())
    clock.advance(20_000 * 10**6)
    warnings = []
    claim_directory(context, clock, warnings.append)
    (log,) = [name for name in names_in(tmp_path) if name != "old"]
    assert re.fullmatch(r"old-\d{4}-\d\d-\d\d \d\d-\d\d-\d\d\.\d{3}[+-]\d{4}-error\.log", log)
    assert warnings == [f"WARNING: Existing errors saved to: {tmp_path / log}"]
    assert (tmp_path / log).read_text() == (
        f"***\n2 observations from {began} to {began} for:\n (11) one thing\n"
        f"***\n1 observations from {began} to {began} for:\n (9) another\n"
        "\n2 distinct errors observed.\n"
    )


def test_an_empty_error_log_is_not_saved(tmp_path, clock):
    leave_behind(tmp_path / "old", clock)
    assert save_errors(tmp_path / "old", clock) is None
    assert save_errors(tmp_path / "none", clock) is None
    assert names_in(tmp_path) == ["old"]


def test_an_unreadable_cnc_file_is_rejected_and_kept(tmp_path, clock):
    context = Context(dir=tmp_path / "old")
    context.dir.mkdir()
    (context.dir / "cnc.dat").write_bytes(b"\xff" * 8192)
    with pytest.raises(StorageError):
        claim_directory(context, clock)
    assert (context.dir / "cnc.dat").exists()


@pytest.fixture(params=[False, True], ids=["asks", "delete-on-start"])
def context(request, tmp_path):
    """Settings that take `old`, with and without the check for a living driver."""
    return Context(dir=tmp_path / "old", dir_delete_on_start=request.param, driver_timeout_ms=0)


def assert_refused(context, clock, reason):
    """The directory is not taken, the error gives the reason, and no file is changed or deleted."""
    root = context.dir.parent
    before = tree(root)
    with pytest.raises(StorageError, match=reason) as caught:
        claim_directory(context, clock)
    assert "AERON_DIR" in str(caught.value)
    assert tree(root) == before


def tree(root):
    """Every path below `root`, with the target of a link or the content of a small file."""
    found = {}
    for path in root.rglob("*"):
        if path.is_symlink():
            found[path] = path.readlink()
        elif path.is_dir():
            found[path] = None
        else:
            found[path] = path.read_bytes()[:4096]
    return found


def other_owner(monkeypatch, name):
    """Let the file system report another owner of the entry `name`."""
    true_stat = os.stat

    def changed(path, **options):
        status = true_stat(path, **options)
        if str(path) != name:
            return status
        return os.stat_result((*status[:4], status.st_uid + 1, *status[5:]))

    monkeypatch.setattr(os, "stat", changed)


@pytest.mark.parametrize("folder", ["images", "publications"])
def test_a_directory_with_a_folder_of_a_known_name_keeps_its_files(context, clock, folder):
    (context.dir / folder).mkdir(parents=True)
    (context.dir / "index.html").write_text("<p>")
    assert_refused(context, clock, "index.html is not a file of a media driver")


def test_an_unknown_file_beside_those_of_a_dead_driver_prevents_deletion(context, clock):
    leave_behind(context.dir, ManualClock(epoch_ms=1), (11, "noted"))
    (context.dir / "thesis.txt").write_text("dear")
    assert_refused(context, clock, "thesis.txt is not a file of a media driver")


@pytest.mark.parametrize("name", ["photo.jpg", "1.logbuffer.bak", "a.logbuffer", ".logbuffer"])
def test_an_unknown_file_among_the_logs_prevents_deletion(context, clock, name):
    leave_behind(context.dir, ManualClock(epoch_ms=1))
    (context.dir / "images").mkdir()
    (context.dir / "images" / name).write_text("dear")
    assert_refused(context, clock, f"images/{name} is not a file of a media driver")


@pytest.mark.parametrize(
    "name", ["cnc.dat", "loss-report.dat", "publications", "images", "images/7.logbuffer"]
)
def test_a_link_inside_a_directory_prevents_deletion(context, clock, tmp_path, name):
    leave_behind(tmp_path / "target", ManualClock(epoch_ms=1))
    (tmp_path / "target" / "7.logbuffer").write_text("dear")
    (context.dir / name).parent.mkdir(parents=True)
    aim = tmp_path / "target"
    (context.dir / name).symlink_to(aim / "cnc.dat" if "." in name else aim)
    assert_refused(context, clock, f"{name} is a symbolic link")


@pytest.mark.parametrize("name", ["cnc.dat", "loss-report.dat", "images", "1.logbuffer"])
def test_a_file_of_another_owner_prevents_deletion(context, clock, monkeypatch, name):
    leave_behind(context.dir, ManualClock(epoch_ms=1))
    (context.dir / "images").mkdir()
    (context.dir / "images" / "1.logbuffer").write_text("log")
    (context.dir / "loss-report.dat").write_text("report")
    other_owner(monkeypatch, name)
    assert_refused(context, clock, f"{name} is owned by uid {os.geteuid() + 1}")


@pytest.mark.parametrize("content", [b"G01 X10 Y20 F1500\n" * 500, b"G01"])
def test_a_cnc_file_that_no_driver_created_is_kept(context, clock, content):
    context.dir.mkdir()
    (context.dir / "cnc.dat").write_bytes(content)
    assert_refused(context, clock, r"cnc\.dat")


@pytest.mark.parametrize("content", [b"", bytes(64), bytes(8192)])
def test_the_files_of_a_driver_killed_during_its_start_are_deleted(context, clock, content):
    (context.dir / "images").mkdir(parents=True)
    (context.dir / "publications").mkdir()
    (context.dir / "cnc.dat").write_bytes(content)
    claim_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]


def test_all_files_of_a_dead_driver_are_deleted(context, clock):
    leave_behind(context.dir, ManualClock(epoch_ms=1))
    (context.dir / "loss-report.dat").write_bytes(bytes(4096))
    for log in ("publications/12.logbuffer", "images/-7.logbuffer"):
        (context.dir / log).parent.mkdir()
        (context.dir / log).write_bytes(bytes(4096))
    claim_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]
    assert names_in(context.dir / "images") == names_in(context.dir / "publications") == []


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_of_another_owner_is_not_followed(
    context, clock, monkeypatch, tmp_path, is_dangling
):
    if not is_dangling:
        leave_behind(tmp_path / "victim", ManualClock(epoch_ms=1))
    context.dir.symlink_to(tmp_path / "victim")
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert_refused(context, clock, rf"old \(AERON_DIR\) is a symbolic link owned by uid {uid}")


def test_a_directory_of_another_owner_is_refused(context, clock, monkeypatch):
    context.dir.mkdir()
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert_refused(context, clock, f"is owned by uid {uid}")


def test_circular_links_are_rejected(context, clock):
    context.dir.symlink_to("other")
    context.dir.with_name("other").symlink_to("old")
    with pytest.raises(StorageError, match="AERON_DIR"):
        claim_directory(context, clock)


def test_a_directory_that_cannot_be_removed_is_emptied_and_used(context, clock, monkeypatch):
    leave_behind(context.dir, ManualClock(epoch_ms=1))

    def refuse(path):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))

    monkeypatch.setattr(Path, "rmdir", refuse)
    monkeypatch.setattr(os, "rmdir", refuse)
    claim_directory(context, clock)
    assert names_in(context.dir) == ["images", "publications"]


@pytest.mark.parametrize("umask", [0, 0o022, 0o027, 0o077])
def test_file_modes_follow_the_umask(tmp_path, clock, umask):
    context = Context(dir=tmp_path / "parent" / "old")
    before = os.umask(umask)
    try:
        claim_directory(context, clock)
        leave_behind(context.dir, clock)
    finally:
        os.umask(before)
    for folder in (
        context.dir.parent,
        context.dir,
        *map(context.dir.joinpath, ("images", "publications")),
    ):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~umask
    assert stat.S_IMODE((context.dir / "cnc.dat").stat().st_mode) == 0o666 & ~umask


def test_a_link_to_the_directory_is_followed(tmp_path, clock):
    leave_behind(tmp_path / "real", ManualClock(epoch_ms=1))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    clock.advance(10**10)
    claim_directory(Context(dir=tmp_path / "link", driver_timeout_ms=1), clock)
    assert names_in(tmp_path / "real") == ["images", "publications"]


def test_a_path_that_cannot_be_a_directory_is_rejected(tmp_path, clock):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="AERON_DIR"):
        claim_directory(Context(dir=tmp_path / "file"), clock)
    with pytest.raises(StorageError, match="AERON_DIR"):
        claim_directory(Context(dir=tmp_path / "file" / "below"), clock)


def test_a_directory_is_kept_at_shutdown_by_default(tmp_path, clock):
    context = Context(dir=tmp_path / "old")
    claim_directory(context, clock)
    release_directory(context)
    assert context.dir.is_dir()
    release_directory(Context(dir=tmp_path / "old", dir_delete_on_shutdown=True))
    assert not context.dir.exists()


def test_a_directory_behind_a_link_is_deleted_at_shutdown(tmp_path, clock):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    context = Context(dir=tmp_path / "link", dir_delete_on_shutdown=True)
    claim_directory(context, clock)
    assert (tmp_path / "real").is_dir()
    release_directory(context)
    assert not (tmp_path / "real").exists()


def test_deletion_at_shutdown_keeps_unknown_files_and_warns(tmp_path, clock):
    context = Context(dir=tmp_path / "old", dir_delete_on_shutdown=True)
    claim_directory(context, clock)
    leave_behind(context.dir, clock)
    (context.dir / "images" / "photo.jpg").write_text("dear")
    (context.dir / "publications" / "1.logbuffer").symlink_to(tmp_path / "elsewhere")
    warnings = []
    release_directory(context, warnings.append)
    assert sorted(tree(context.dir)) == [
        context.dir / "images",
        context.dir / "images" / "photo.jpg",
        context.dir / "publications",
        context.dir / "publications" / "1.logbuffer",
    ]
    (warning,) = warnings
    assert f"{context.dir} (AERON_DIR)" in warning
    assert "images/photo.jpg is not a file of a media driver" in warning


def test_deletion_at_shutdown_does_not_follow_links(tmp_path, clock):
    context = Context(dir=tmp_path / "old", dir_delete_on_shutdown=True)
    claim_directory(context, clock)
    context.dir.rename(tmp_path / "moved")
    leave_behind(tmp_path / "victim", clock)
    context.dir.symlink_to(tmp_path / "victim")
    uid, warnings = os.geteuid(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: uid + 1)
        release_directory(context, warnings.append)
    assert names_in(tmp_path / "victim") == ["cnc.dat"]
    assert [f"symbolic link owned by uid {uid}" in each for each in warnings] == [True]


def test_a_missing_directory_at_shutdown_causes_no_warning(tmp_path):
    warnings = []
    release_directory(Context(dir=tmp_path / "no", dir_delete_on_shutdown=True), warnings.append)
    assert warnings == []


def test_saved_errors_are_not_written_through_a_link(tmp_path, clock):
    leave_behind(tmp_path / "old", clock, (11, "noted"))
    written = save_errors(tmp_path / "old", clock, lambda text: None)
    assert written is not None
    written.unlink()
    (tmp_path / "precious").write_text("dear")
    written.symlink_to(tmp_path / "precious")
    with pytest.raises(StorageError, match="cannot write"):
        save_errors(tmp_path / "old", clock)
    assert (tmp_path / "precious").read_text() == "dear"


def test_a_time_out_of_range_is_written_as_a_number():
    assert format_time(1 << 62) == f"{1 << 62} ms"
    assert format_time(-(1 << 62)) == f"{-(1 << 62)} ms"
