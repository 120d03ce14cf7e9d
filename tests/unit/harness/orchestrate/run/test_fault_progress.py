"""Drops and retransmits so far are read from files that are still growing."""

from types import SimpleNamespace

import numpy as np
import pytest

from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP, HOLD
from windtunnel.harness.artifact.records import append_records
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.run.fault_progress import FaultCounts
from windtunnel.harness.orchestrate.run.one_run import event_emitter


def decisions(*actions):
    records = np.zeros(len(actions), dtype=DECISION)
    records["action"] = actions
    return records


def sample(counter_id, value, type_id=0):
    record = np.zeros(1, dtype=COUNTER_SAMPLE)
    record["counter_id"], record["value"], record["type_id"] = counter_id, value, type_id
    return record


def test_nothing_is_known_without_files(tmp_path):
    counts = FaultCounts(RunDir(tmp_path), ["a", "b"])
    counts.update()
    assert (counts.drop_count, counts.retransmit_count) == (None, None)


def test_empty_files_show_that_nothing_was_dropped(tmp_path):
    folder = RunDir(tmp_path)
    counts = FaultCounts(folder, ["a"])
    append_records(folder.decisions, decisions())
    counts.update()
    assert counts.drop_count == 0


def test_only_drops_are_counted_and_each_once(tmp_path):
    folder = RunDir(tmp_path)
    counts = FaultCounts(folder, ["a"])
    append_records(folder.decisions, decisions(DROP, HOLD, DROP))
    counts.update()
    append_records(folder.decisions, decisions(DROP))
    counts.update()
    counts.update()
    assert counts.drop_count == 3


def test_an_incomplete_record_is_not_read_yet(tmp_path):
    folder = RunDir(tmp_path)
    counts = FaultCounts(folder, ["a"])
    whole = decisions(DROP, DROP).tobytes()
    folder.decisions.write_bytes(whole[:-1])
    counts.update()
    assert counts.drop_count == 1
    folder.decisions.write_bytes(whole)
    counts.update()
    assert counts.drop_count == 2


def test_the_newest_retransmit_counts_of_all_hosts_are_added(tmp_path):
    folder = RunDir(tmp_path)
    counts = FaultCounts(folder, ["a", "b"])
    append_records(folder.host("a").counter_samples, sample(11, 3))
    append_records(folder.host("a").counter_samples, sample(11, 9))
    append_records(folder.host("b").counter_samples, sample(11, 100))
    append_records(folder.host("b").counter_samples, sample(5, 777))
    append_records(folder.host("b").counter_samples, sample(11, 888, type_id=4))
    counts.update()
    assert counts.retransmit_count == 109


def test_the_counts_of_a_killed_driver_are_kept(tmp_path):
    folder = RunDir(tmp_path)
    counts = FaultCounts(folder, ["a"])
    append_records(folder.host("a").counter_samples, sample(11, 3))
    counts.update()
    folder.host("a").save_generation(1)
    counts.update()
    assert counts.retransmit_count == 3
    for value in (0, 1, 2):
        append_records(folder.host("a").counter_samples, sample(11, value))
    counts.update()
    assert counts.retransmit_count == 5


@pytest.mark.parametrize(("fidelity", "count"), [("netns", 1), ("sim", None)])
def test_only_files_that_are_written_during_the_run_are_counted(tmp_path, fidelity, count):
    folder = RunDir(tmp_path)
    network = SimpleNamespace(hosts=["a"])
    spec = SimpleNamespace(
        folder=folder,
        fidelity=fidelity,
        scenario=SimpleNamespace(name="x", network=network),
        seed=1,
        tested=SimpleNamespace(name="ours to ours"),
    )
    events = []
    emit = event_emitter(spec, 0, 1, events.append)
    append_records(folder.decisions, decisions(DROP))
    emit(kind="progress")
    assert [each.drop_count for each in events] == [count]
