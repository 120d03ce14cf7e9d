"""Run folders and log buffers as tables."""

import numpy as np
import pytest

from tests.golden.reader import load, seen_by
from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    CounterFacts,
    write_counters,
)
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP, HOLD
from windtunnel.harness.artifact.middlebox.frame_class import DATA, SM
from windtunnel.harness.artifact.middlebox.ledger import FrameAccount, Ledger, LinkAccount
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.analysis.sources.run_source import RunTableError, read_paths
from windtunnel.reports.analysis.sources.run_tables import (
    READERS,
    counters,
    decisions,
    ledger,
    log_files,
    log_frames,
)


def synthetic_run(folder):
    run = RunDir(folder / "run-s1")
    run.make()
    samples = np.zeros(3, dtype=COUNTER_SAMPLE)
    samples["time_ns"], samples["value"] = [10, 20, 30], [0, 64, 128]
    samples["counter_id"], samples["type_id"], samples["registration_id"] = 7, 4, 99
    samples["registration_id"][2] = 100
    write_records(run.host("a").counter_samples, samples)
    facts = CounterFacts(7, 4, 99, -1, -1, "rcv-pos: 99", "00", 64)
    write_counters(run.host("a").counters, [facts])
    account = FrameAccount(received=10, sent=9, dropped=1)
    links = {"a->b": LinkAccount(frames={"DATA": account}), "b->a": LinkAccount()}
    Ledger(links).write(run.ledger)
    made = np.zeros(2, dtype=DECISION)
    made["action"], made["frame_type"], made["link"] = [DROP, HOLD], [DATA, SM], [0, 1]
    made["position"], made["attempt"], made["timing_sensitive"] = [4096, -1], [1, 3], [0, 1]
    write_records(run.decisions, made)
    return run.path


def rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def test_counters_have_their_labels_and_a_reused_id_has_none(tmp_path):
    told = rows(counters(synthetic_run(tmp_path)))
    assert [(row["host"], row["time_ns"], row["value"]) for row in told] == [
        ("a", 10, 0), ("a", 20, 64), ("a", 30, 128),
    ]  # fmt: skip
    assert [row["label"] for row in told] == ["rcv-pos: 99", "rcv-pos: 99", None]


def test_the_ledger_tells_each_class_of_each_link(tmp_path):
    (row,) = rows(ledger(synthetic_run(tmp_path)))
    assert (row["link"], row["frame_type"], row["received"], row["dropped"]) == (
        "a->b", "DATA", 10, 1,
    )  # fmt: skip
    assert row["unaccounted"] == 0


def test_decisions_are_told_by_name(tmp_path):
    first, second = rows(decisions(synthetic_run(tmp_path)))
    assert (first["action"], first["frame_type"], first["link"]) == ("drop", "DATA", "a->b")
    assert (first["position"], first["attempt"], first["is_timing_sensitive"]) == (4096, 1, False)
    assert (second["action"], second["frame_type"], second["link"]) == ("hold", "SM", "b->a")


def test_what_is_not_there_has_no_rows(tmp_path):
    for _, read in READERS.values():
        if read is not log_frames:
            assert rows(read(tmp_path)) == []
    assert log_files(tmp_path) == []


def test_what_cannot_be_understood_is_named(tmp_path):
    path = synthetic_run(tmp_path)
    RunDir(path).ledger.write_text("{")
    with pytest.raises(RunTableError, match=r"ledger\.json"):
        rows(ledger(path))
    RunDir(path).host("a").counters.write_text("[]")
    with pytest.raises(RunTableError, match=r"counters\.json"):
        rows(counters(path))
    bad = np.zeros(1, dtype=DECISION)
    bad["action"] = 77
    write_records(RunDir(path).decisions, bad)
    with pytest.raises(RunTableError, match="unknown code 77"):
        rows(decisions(path))
    torn = tmp_path / "torn.logbuffer"
    torn.write_bytes(bytes(100))
    with pytest.raises(RunTableError, match=r"torn\.logbuffer"):
        rows(log_frames(torn))


@pytest.mark.parametrize("golden_set", ["one-message", "clean", "loss-unreliable"])
def test_golden_log_buffers_end_where_the_publisher_ended(golden_set, tmp_path):
    path = tmp_path / "publication-4.logbuffer"
    path.write_bytes(load(golden_set, path.name))
    told, publisher = rows(log_frames(path)), seen_by(golden_set, "pub.txt")
    last = told[-1]
    assert last["position"] + (last["frame_length"] + 31 & ~31) == publisher["position"]
    places = [row["position"] for row in told]
    assert places == sorted(places)
    assert {row["session_id"] for row in told} == {publisher["session"]}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "expected a path"),
        ({"path": "gone"}, "gone: no such file or folder"),
        ({"port": "1"}, "option 'port'"),
        ({"paths": "x"}, "not a JSON list"),
    ],
)
def test_says_what_is_wrong_with_an_option(options, text):
    with pytest.raises(RunTableError, match=text):
        read_paths(options)
