"""The record of a lab names its owner, and shows whether the owner is alive."""

import errno
import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.teardown import state
from windtunnel.harness.orchestrate.teardown.state import LabState


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(state, "MEMORY_ROOT", folder)
    return folder


RECORD = LabState(token="0a1b2c3d", run_id="suite/run", kind="netns", namespaces=("wt-0a1b2c3d-a",))


def test_a_record_is_read_back_as_it_was_written(tmp_path, memory):
    path = RECORD.write(tmp_path / "labs")
    assert state.load(path) == RECORD
    assert state.load(memory / "windtunnel-0a1b2c3d" / "owner.json") == RECORD
    assert list(state.record_files(tmp_path / "labs")) == [
        tmp_path / "labs" / "0a1b2c3d.json",
        memory / "windtunnel-0a1b2c3d" / "owner.json",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "other/1"}', '{"token": "x"}'])
def test_a_file_that_is_not_a_record_reads_as_none(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert state.load(path) is None


def test_a_record_with_a_missing_or_an_extra_field_reads_as_none(tmp_path):
    path = RECORD.write(tmp_path)
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "more": 1}))
    assert state.load(path) is None
    del whole["token"]
    path.write_text(json.dumps(whole))
    assert state.load(path) is None


def test_this_process_is_a_living_owner():
    assert RECORD.pid == os.getpid()
    assert RECORD.owner_is_alive()


def test_a_process_that_reuses_the_id_of_the_owner_is_not_the_owner():
    assert not replace(RECORD, started_ticks=RECORD.started_ticks + 1).owner_is_alive()


def test_an_owner_of_an_earlier_boot_is_dead():
    assert not replace(RECORD, boot_id="another").owner_is_alive()


def test_an_owner_that_has_ended_is_dead_even_while_no_one_has_reaped_it():
    ended = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    ended.stdout.read()
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    ticks = int(Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[19])
    record = replace(RECORD, pid=ended.pid, started_ticks=ticks)
    assert not record.owner_is_alive()
    ended.communicate()
    assert not record.owner_is_alive()


def test_the_directory_in_memory_is_for_its_owner_alone(tmp_path, memory):
    before = os.umask(0)
    try:
        RECORD.write(tmp_path / "labs")
    finally:
        os.umask(before)
    assert stat.S_IMODE((memory / "windtunnel-0a1b2c3d").stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_an_existing_directory_is_not_used(tmp_path, memory, kind):
    planted = memory / "windtunnel-0a1b2c3d"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        planted.symlink_to(elsewhere)
    else:
        planted.mkdir()
    with pytest.raises(LabError, match="windtunnel-0a1b2c3d"):
        RECORD.write(tmp_path / "labs")
    assert list(planted.iterdir()) == []


def test_a_record_is_not_written_through_a_link_with_a_name_that_can_be_guessed(tmp_path):
    labs, victim = tmp_path / "labs", tmp_path / "victim"
    labs.mkdir()
    victim.write_text("precious")
    for name in ("0a1b2c3d.new", "0a1b2c3d.json"):
        (labs / name).symlink_to(victim)
    path = RECORD.write(labs)
    assert victim.read_text() == "precious"
    assert state.load(path) == RECORD


def test_records_are_not_written_into_a_linked_folder(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "labs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LabError, match="found a link"):
        RECORD.write(tmp_path / "labs")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_failed_write_leaves_no_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        RECORD.write(tmp_path / "labs")
    assert list((tmp_path / "labs").iterdir()) == []


def test_a_record_under_the_name_of_another_lab_reads_as_none(tmp_path):
    path = RECORD.write(tmp_path)
    assert state.load(path.rename(tmp_path / "00000000.json")) is None


def test_a_record_reports_what_is_wrong_with_it(tmp_path):
    path = RECORD.write(tmp_path)
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "pid": "1"}))
    with pytest.raises(state.RecordError, match="pid: expected an integer from 1 to 4194304"):
        state.read(path)
