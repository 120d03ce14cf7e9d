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
    samples = rows(counters(synthetic_run(tmp_path)))
    assert [(row["host"], row["time_ns"], row["value"]) for row in samples] == [
        ("a", 10, 0), ("a", 20, 64), ("a", 30, 128),
    ]  # fmt: skip
    assert [row["label"] for row in samples] == ["rcv-pos: 99", "rcv-pos: 99", None]


def test_the_ledger_has_a_row_per_frame_class_and_link(tmp_path):
    (row,) = rows(ledger(synthetic_run(tmp_path)))
    assert (row["link"], row["frame_type"], row["received"], row["dropped"]) == (
        "a->b", "DATA", 10, 1,
    )  # fmt: skip
    assert row["unaccounted"] == 0


def test_decisions_have_names(tmp_path):
    first, second = rows(decisions(synthetic_run(tmp_path)))
    assert (first["action"], first["frame_type"], first["link"]) == ("drop", "DATA", "a->b")
    assert (first["position"], first["attempt"], first["is_timing_sensitive"]) == (4096, 1, False)
    assert (second["action"], second["frame_type"], second["link"]) == ("hold", "SM", "b->a")


def test_missing_files_have_no_rows(tmp_path):
    for _, read in READERS.values():
        if read is not log_frames:
            assert rows(read(tmp_path)) == []
    assert log_files(tmp_path) == []


def test_a_file_that_cannot_be_parsed_is_named(tmp_path):
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
    frames, publisher = rows(log_frames(path)), seen_by(golden_set, "pub.txt")
    last = frames[-1]
    assert last["position"] + (last["frame_length"] + 31 & ~31) == publisher["position"]
    positions = [row["position"] for row in frames]
    assert positions == sorted(positions)
    assert {row["session_id"] for row in frames} == {publisher["session"]}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "expected a path"),
        ({"path": "gone"}, "gone: no such file or folder"),
        ({"port": "1"}, "option 'port'"),
        ({"paths": "x"}, "not a JSON list"),
    ],
)
def test_an_invalid_option_is_explained(options, text):
    with pytest.raises(RunTableError, match=text):
        read_paths(options)
