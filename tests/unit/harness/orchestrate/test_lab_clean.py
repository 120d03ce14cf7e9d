"""Cleaning removes left-overs of dead harnesses, and nothing else."""

import json
import os
import shutil
import stat
import time
import tracemalloc
from dataclasses import asdict, replace

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.teardown import clean, state
from windtunnel.harness.orchestrate.teardown.state import LabState

STRANGER = 12345
AS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give a file to another user: run as root"
)


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine without namespaces and containers, with a memory folder in the test's folder."""
    memory, namespaces = tmp_path / "memory", tmp_path / "netns"
    memory.mkdir()
    namespaces.mkdir()
    monkeypatch.setattr(state, "MEMORY_ROOT", memory)
    monkeypatch.setattr(clean, "NAMESPACE_FOLDER", namespaces)
    monkeypatch.setattr(clean.process, "run", lambda argv: (namespaces / argv[-1]).unlink())
    return tmp_path


@pytest.fixture
def reported():
    """The lines about items that are not removed."""
    return []


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


def test_all_left_overs_of_a_dead_harness_are_removed(machine):
    lab(machine, "dead0000", alive=False)
    removed = clean.remove_leftovers(machine / "runs")
    assert names(machine, "netns") == names(machine, "memory") == names(machine, "runs/.lab") == []
    assert len(removed) == 3
    assert clean.remove_leftovers(machine / "runs") == []


def test_resources_of_a_living_harness_are_kept(machine):
    lab(machine, "alive000", alive=True)
    lab(machine, "dead0000", alive=False)
    clean.remove_leftovers(machine / "runs")
    assert names(machine, "netns") == ["wt-alive000-a", "wt-alive000-mid"]
    assert names(machine, "memory") == ["windtunnel-alive000"]
    assert names(machine, "runs/.lab") == ["alive000.json"]


def test_leftovers_of_another_checkout_are_found_through_memory(machine):
    lab(machine, "dead0000", alive=False)
    clean.remove_leftovers(machine / "elsewhere")
    assert names(machine, "netns") == names(machine, "memory") == []


def test_a_namespace_without_any_record_is_found_by_its_name(machine):
    (machine / "netns" / "wt-00000000-b").touch()
    (machine / "netns" / "someone-elses").touch()
    assert clean.remove_leftovers(machine / "runs") == ["namespace wt-00000000-b"]
    assert names(machine, "netns") == ["someone-elses"]


@pytest.mark.parametrize("ago", [2, -2], ids=["old", "from the future"])
def test_a_directory_without_a_record_is_removed_once_no_one_can_be_about_to_write_one(
    machine, monkeypatch, ago
):
    monkeypatch.setattr(clean, "RECORD_TIMEOUT_S", 3600.0)
    directory = machine / "memory" / "windtunnel-00000000"
    directory.mkdir()
    assert clean.remove_leftovers(machine / "runs") == []
    long_ago_s = time.time() - ago * clean.RECORD_TIMEOUT_S
    os.utime(directory, (long_ago_s, long_ago_s))
    assert clean.remove_leftovers(machine / "runs") == [f"directory {directory}"]


def test_a_record_that_cannot_be_read_is_removed_and_mentioned(machine):
    (machine / "runs" / ".lab").mkdir(parents=True)
    (machine / "runs" / ".lab" / "x.json").write_text("{")
    (line,) = clean.remove_leftovers(machine / "runs")
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
    with pytest.raises(LabError, match="expected a name that begins with wt-"):
        clean.remove(record, machine / "runs" / ".lab")
    assert "someone-elses" in names(machine, "netns")


def plant(machine, name, text="{}"):
    """Write a file into the folder of lab records."""
    labs = machine / "runs" / ".lab"
    labs.mkdir(parents=True, exist_ok=True)
    path = labs / f"{name}.json"
    path.write_text(text)
    return path


def document_of(record, **changed):
    return json.dumps({"schema": state.SCHEMA, **asdict(record), **changed})


WRONG_FIELDS = [
    *(("token", value) for value in (5, None, "", "../x", "A-B", "x" * 200)),
    *(("run_id", value) for value in (5, None, "x" * 5000)),
    *(("kind", value) for value in ([], "no such kind")),
    *(("namespaces", value) for value in (5, "wt-aaaa0000-a", [5], ["eth0"], [["x"]])),
    *(("namespaces", value) for value in (["wt-bbbb0000-a"], ["wt-aaaa0000-/../x"])),
    ("namespaces", ["wt-aaaa0000-a"] * 1000),
    *(("directories", value) for value in (5, [5], ["/etc"], ["windtunnel-x/../../etc"])),
    ("directories", ["/dev/shm/windtunnel-x\0"]),
    *(("pid", value) for value in ("1", True, -1, 0, 1 << 22 | 1, 1.5, "../../tmp/x", None)),
    *(("started_ticks", value) for value in ("1", True, -1, 1 << 63, None)),
    *(("boot_id", value) for value in (5, None, "", "x" * 200, "\n")),
]


@pytest.mark.parametrize(("name", "value"), WRONG_FIELDS)
def test_a_record_with_a_wrong_field_is_no_record_and_stops_nothing(machine, name, value):
    planted = lab(machine, "aaaa0000", alive=False)
    path = plant(machine, "aaaa0000", document_of(planted, **{name: value}))
    assert state.load(path) is None
    lab(machine, "dead0000", alive=False)
    clean.remove_leftovers(machine / "runs")
    assert names(machine, "netns") == names(machine, "memory") == names(machine, "runs/.lab") == []


@pytest.mark.parametrize(
    "text", ["[" * 60_000, "[" * 200_000, '{"a":' * 12_000, "9" * 60_000, "\udcff"]
)
def test_a_record_that_is_not_text_does_not_stop_the_others(machine, text):
    lab(machine, "dead0000", alive=False)
    path = plant(machine, "00000000")
    path.write_bytes(text.encode(errors="surrogateescape"))
    clean.remove_leftovers(machine / "runs")
    assert names(machine, "memory") == names(machine, "runs/.lab") == []


def test_a_record_of_100_mb_is_not_read(machine, monkeypatch):
    lab(machine, "dead0000", alive=False)
    with plant(machine, "00000000").open("wb") as file:
        file.truncate(100_000_000)
    tracemalloc.start()
    try:
        clean.remove_leftovers(machine / "runs")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert names(machine, "memory") == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["fifo", "link", "dangling link", "directory", "socket"])
def test_a_record_that_is_no_regular_file_is_left_alone(machine, reported, kind):
    lab(machine, "dead0000", alive=False)
    path = plant(machine, "00000000")
    path.unlink()
    outside = machine / "outside.json"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    else:
        if kind == "link":
            outside.write_text(document_of(lab(machine, "a11ce000", alive=True)))
        path.symlink_to(outside)
    clean.remove_leftovers(machine / "runs", reported.append)
    assert "windtunnel-dead0000" not in names(machine, "memory")
    assert os.path.lexists(path)
    assert [line for line in reported if str(path) in line] == reported != []


def test_records_in_a_linked_folder_are_left_alone(machine, reported):
    record = lab(machine, "dead0000", alive=False)
    (machine / "runs" / ".lab").rename(machine / "elsewhere")
    (machine / "runs" / ".lab").symlink_to(machine / "elsewhere")
    shutil.rmtree(record.memory_directory())
    clean.remove_leftovers(machine / "runs", reported.append)
    assert names(machine, "elsewhere") == ["dead0000.json"]
    assert len(reported) == 1


@AS_ROOT
def test_a_record_of_another_user_neither_protects_nor_is_acted_on(machine, reported):
    lab(machine, "dead0000", alive=False)
    (machine / "runs" / ".lab" / "dead0000.json").unlink()
    dead = LabState("dead0000", "x", "netns", ("wt-dead0000-a",))
    claims_alive = plant(machine, "dead0000", document_of(dead))
    living = lab(machine, "a11ce000", alive=True)
    says_dead = plant(machine, "a11ce000", document_of(living, started_ticks=1))
    for path in (claims_alive, says_dead):
        os.chown(path, STRANGER, STRANGER)
    clean.remove_leftovers(machine / "runs", reported.append)
    assert names(machine, "memory") == ["windtunnel-a11ce000"]
    assert names(machine, "netns") == ["wt-a11ce000-a", "wt-a11ce000-mid"]
    assert says_dead.exists()
    assert any(str(says_dead) in line and str(STRANGER) in line for line in reported)


@AS_ROOT
def test_a_directory_of_another_user_is_left_alone_whatever_it_claims(
    machine, reported, monkeypatch
):
    monkeypatch.setattr(clean, "RECORD_TIMEOUT_S", -1.0)
    lab(machine, "dead0000", alive=False)
    theirs = machine / "memory" / "windtunnel-bad00000"
    theirs.mkdir()
    (theirs / "owner.json").write_text(document_of(LabState("dead0000", "x", "sim")))
    for path in (theirs, theirs / "owner.json"):
        os.chown(path, STRANGER, STRANGER)
    clean.remove_leftovers(machine / "runs", reported.append)
    assert names(machine, "memory") == ["windtunnel-bad00000"]
    assert [str(theirs) in line for line in reported] == [True]


def test_a_link_with_the_name_of_a_directory_is_left_alone(machine, reported, monkeypatch):
    monkeypatch.setattr(clean, "RECORD_TIMEOUT_S", -1.0)
    lab(machine, "dead0000", alive=False)
    precious = machine / "precious"
    precious.mkdir()
    (precious / "owner.json").write_text(document_of(LabState("f00d0000", "x", "sim")))
    link = machine / "memory" / "windtunnel-bad00000"
    link.symlink_to(precious)
    clean.remove_leftovers(machine / "runs", reported.append)
    assert names(machine, "memory") == ["windtunnel-bad00000"]
    assert names(machine, "precious") == ["owner.json"]
    assert [str(link) in line for line in reported] == [True]


def test_lines_about_kept_items_are_bounded(machine, reported):
    for index in range(clean.SKIPPED_LINES_MAX + 7):
        (machine / "memory" / f"windtunnel-{index}").symlink_to(machine)
    clean.remove_leftovers(machine / "runs", reported.append)
    assert len(reported) == clean.SKIPPED_LINES_MAX + 1
    assert "7 more" in reported[-1]


def test_names_are_printed_without_control_characters(machine, capsys):
    (machine / "memory" / "windtunnel-\x1b[2J").symlink_to(machine)
    clean.remove_leftovers(machine / "runs")
    assert "left alone" in (err := capsys.readouterr().err)
    assert "\x1b" not in err


def test_one_failed_removal_does_not_stop_the_others_and_is_raised_at_the_end(machine, monkeypatch):
    def run(argv):
        if argv[-1].startswith("wt-00000000"):
            raise LabError("the kernel refuses")
        (machine / "netns" / argv[-1]).unlink()

    lab(machine, "00000000", alive=False)
    lab(machine, "dead0000", alive=False)
    monkeypatch.setattr(clean.process, "run", run)
    with pytest.raises(clean.NotAllRemoved, match="the kernel refuses") as caught:
        clean.remove_leftovers(machine / "runs")
    assert names(machine, "netns") == ["wt-00000000-a", "wt-00000000-mid"]
    assert names(machine, "runs/.lab") == ["00000000.json"]
    assert f"directory {machine / 'memory' / 'windtunnel-dead0000'}" in caught.value.removed


@AS_ROOT
def test_namespaces_in_a_folder_of_another_user_are_left_alone(machine):
    (machine / "netns" / "wt-00000000-b").touch()
    os.chown(machine / "netns", STRANGER, STRANGER)
    assert clean.remove_leftovers(machine / "runs") == []
    assert names(machine, "netns") == ["wt-00000000-b"]


@AS_ROOT
def test_a_lab_goes_down_beside_a_directory_that_another_user_planted(machine):
    record = LabState("dead0000", "x", "netns")
    record.memory_directory().mkdir()
    os.chown(record.memory_directory(), STRANGER, STRANGER)
    assert clean.remove(record, machine / "runs" / ".lab") == []
    assert names(machine, "memory") == ["windtunnel-dead0000"]


def test_a_watchdog_falls_back_on_the_record_in_memory(machine):
    record = lab(machine, "dead0000", alive=False)
    path = machine / "runs" / ".lab" / "dead0000.json"
    path.write_text("")
    clean.remove_recorded(path)
    assert not record.memory_directory().exists()
    assert names(machine, "netns") == []
