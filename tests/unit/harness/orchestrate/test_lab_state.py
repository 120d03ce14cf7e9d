"""The record of a lab says who owns it, and whether that owner still lives."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.orchestrate import state
from harness.orchestrate.state import LabState


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
def test_what_is_no_record_reads_as_none(tmp_path, text):
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


def test_this_process_is_an_owner_that_lives():
    assert RECORD.pid == os.getpid()
    assert RECORD.owner_is_alive()


def test_a_process_that_has_taken_the_id_of_the_owner_is_not_the_owner():
    assert not replace(RECORD, started_ticks=RECORD.started_ticks + 1).owner_is_alive()


def test_an_owner_of_an_earlier_boot_is_dead():
    assert not replace(RECORD, boot_id="another").owner_is_alive()


def test_an_owner_that_has_ended_is_dead_even_while_nobody_has_reaped_it():
    ended = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    ended.stdout.read()
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    ticks = int(Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[19])
    record = replace(RECORD, pid=ended.pid, started_ticks=ticks)
    assert not record.owner_is_alive()
    ended.communicate()
    assert not record.owner_is_alive()
