"""Cleaning removes what dead harnesses left, and nothing else."""

import os
import time
from dataclasses import replace

import pytest

from harness.orchestrate import clean, state
from harness.orchestrate.lab import LabError
from harness.orchestrate.state import LabState


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine of our own: no namespaces, no containers, a memory folder in the test's folder."""
    memory, namespaces = tmp_path / "memory", tmp_path / "netns"
    memory.mkdir()
    namespaces.mkdir()
    monkeypatch.setattr(state, "MEMORY_ROOT", memory)
    monkeypatch.setattr(clean, "NAMESPACE_FOLDER", namespaces)
    monkeypatch.setattr(clean, "_remove_containers", list)
    monkeypatch.setattr(clean.process, "run", lambda argv: (namespaces / argv[-1]).unlink())
    return tmp_path


def lab(machine, token, *, alive):
    record = LabState(token, f"run of {token}", "netns", (f"wt-{token}-a", f"wt-{token}-mid"))
    if not alive:
        record = replace(record, started_ticks=1)
    record.write(machine / "runs" / ".lab")
    (record.memory_directory() / "a").mkdir()
    for name in record.namespaces:
        (machine / "netns" / name).touch()
    return record


def names(machine, folder):
    return sorted(path.name for path in (machine / folder).iterdir())


def test_all_that_a_dead_harness_left_is_removed(machine):
    lab(machine, "dead0000", alive=False)
    removed = clean.remove_left_overs(machine / "runs")
    assert names(machine, "netns") == names(machine, "memory") == names(machine, "runs/.lab") == []
    assert len(removed) == 3
    assert clean.remove_left_overs(machine / "runs") == []


def test_what_a_living_harness_owns_is_left_alone(machine):
    lab(machine, "alive000", alive=True)
    lab(machine, "dead0000", alive=False)
    clean.remove_left_overs(machine / "runs")
    assert names(machine, "netns") == ["wt-alive000-a", "wt-alive000-mid"]
    assert names(machine, "memory") == ["windtunnel-alive000"]
    assert names(machine, "runs/.lab") == ["alive000.json"]


def test_left_overs_of_another_checkout_are_found_through_memory(machine):
    lab(machine, "dead0000", alive=False)
    clean.remove_left_overs(machine / "elsewhere")
    assert names(machine, "netns") == names(machine, "memory") == []


def test_a_namespace_without_any_record_is_found_by_its_name(machine):
    (machine / "netns" / "wt-00000000-b").touch()
    (machine / "netns" / "someone-elses").touch()
    assert clean.remove_left_overs(machine / "runs") == ["namespace wt-00000000-b"]
    assert names(machine, "netns") == ["someone-elses"]


def test_a_directory_without_a_record_is_removed_once_nobody_can_be_about_to_write_one(
    machine, monkeypatch
):
    monkeypatch.setattr(clean, "RECORD_TIMEOUT_S", 3600.0)
    directory = machine / "memory" / "windtunnel-00000000"
    directory.mkdir()
    assert clean.remove_left_overs(machine / "runs") == []
    long_ago_s = time.time() - 2 * clean.RECORD_TIMEOUT_S
    os.utime(directory, (long_ago_s, long_ago_s))
    assert clean.remove_left_overs(machine / "runs") == [f"directory {directory}"]


def test_a_record_that_cannot_be_read_is_removed_and_mentioned(machine):
    (machine / "runs" / ".lab").mkdir(parents=True)
    (machine / "runs" / ".lab" / "x.json").write_text("{")
    (line,) = clean.remove_left_overs(machine / "runs")
    assert line.startswith("unreadable record")
    assert names(machine, "runs/.lab") == []


@pytest.mark.parametrize("path", ["memory", "memory/precious", "home/windtunnel-x"])
def test_a_record_cannot_have_any_directory_removed(machine, path):
    (machine / path).mkdir(parents=True, exist_ok=True)
    record = replace(lab(machine, "dead0000", alive=False), directories=(str(machine / path),))
    with pytest.raises(LabError, match="left alone"):
        clean.remove(record, machine / "runs" / ".lab")
    assert (machine / path).is_dir()


def test_a_record_cannot_have_any_namespace_removed(machine):
    (machine / "netns" / "someone-elses").touch()
    record = replace(lab(machine, "dead0000", alive=False), namespaces=("someone-elses",))
    with pytest.raises(LabError, match="not one of ours"):
        clean.remove(record, machine / "runs" / ".lab")
    assert "someone-elses" in names(machine, "netns")
