"""Drops and NAKs so far are read from files that still grow."""

import numpy as np

from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP, HOLD
from windtunnel.harness.artifact.records import append_records
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.run.fault_progress import FaultCounts


def decisions(*actions):
    records = np.zeros(len(actions), dtype=DECISION)
    records["action"] = actions
    return records


def sample(counter_id, value, type_id=0):
    record = np.zeros(1, dtype=COUNTER_SAMPLE)
    record["counter_id"], record["value"], record["type_id"] = counter_id, value, type_id
    return record


def test_nothing_has_befallen_a_run_without_files(tmp_path):
    weather = FaultCounts(RunDir(tmp_path), ["a", "b"])
    weather.update()
    assert (weather.drop_count, weather.nak_count) == (0, 0)


def test_only_drops_are_counted_and_each_once(tmp_path):
    folder = RunDir(tmp_path)
    weather = FaultCounts(folder, ["a"])
    append_records(folder.decisions, decisions(DROP, HOLD, DROP))
    weather.update()
    append_records(folder.decisions, decisions(DROP))
    weather.update()
    weather.update()
    assert weather.drop_count == 3


def test_a_record_that_is_half_written_waits_for_its_rest(tmp_path):
    folder = RunDir(tmp_path)
    weather = FaultCounts(folder, ["a"])
    whole = decisions(DROP, DROP).tobytes()
    folder.decisions.write_bytes(whole[:-1])
    weather.update()
    assert weather.drop_count == 1
    folder.decisions.write_bytes(whole)
    weather.update()
    assert weather.drop_count == 2


def test_the_newest_nak_counts_of_all_hosts_are_added(tmp_path):
    folder = RunDir(tmp_path)
    weather = FaultCounts(folder, ["a", "b"])
    append_records(folder.host("a").counter_samples, sample(5, 3))
    append_records(folder.host("a").counter_samples, sample(5, 9))
    append_records(folder.host("b").counter_samples, sample(5, 100))
    append_records(folder.host("b").counter_samples, sample(6, 777))
    append_records(folder.host("b").counter_samples, sample(5, 888, type_id=4))
    weather.update()
    assert weather.nak_count == 109
