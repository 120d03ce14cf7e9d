"""Each file is read back as written; a missing one is None, and errors name a damaged one."""

from datetime import UTC, datetime

import numpy as np
import pytest

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document
from windtunnel.harness.artifact.host import delivery, frame_seen, offer
from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    CounterFacts,
    read_counters,
    read_samples,
    write_counters,
)
from windtunnel.harness.artifact.host.host_facts import (
    CaptureFacts,
    ErrorObservation,
    SnmpFacts,
    read_error_log,
    udp_lines,
    write_error_log,
)
from windtunnel.harness.artifact.middlebox import decision
from windtunnel.harness.artifact.middlebox.ledger import FrameAccount, Ledger, LinkAccount
from windtunnel.harness.artifact.records import (
    append_records,
    has_torn_tail,
    read_records,
    write_records,
)
from windtunnel.harness.artifact.run.manifest import Manifest, Phase, ProcessExit, SubjectFacts
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir, new_suite_id, run_name

LAYOUTS = {
    "decision": (decision.DECISION, 64),
    "offer": (offer.OFFER, 24),
    "delivery": (delivery.DELIVERY, 16),
    "frame seen": (frame_seen.FRAME_SEEN, 52),
    "header": (frame_seen.HEADER, 32),
    "counter sample": (COUNTER_SAMPLE, 32),
}
DOCUMENTS = {
    "manifest": Manifest(
        "id",
        "loss/x",
        7,
        "netns",
        ["windtunnel", "run"],
        {"numpy": "2"},
        {"cores": 2},
        [Phase("up", 1, 2)],
        [ProcessExit("a/driver", "driver", -15, True, "hosts/a/driver.log", "bye")],
        ["one"],
        complete=True,
        subjects={"a": SubjectFacts("publisher", "ours", "1.53.0")},
    ),
    "publisher": PublisherFacts(-1, 1001, -3, 65536, 1408, 0, 64, 1, 2, 3, 4, 5, None),
    "subscriber": SubscriberFacts(-1, 1001, 0, 64, True, 1, 1, 4, 5, "poll failed"),
    "snmp": SnmpFacts({"RcvbufErrors": 1}, {"RcvbufErrors": 4}),
    "capture": CaptureFacts(100, 1),
    "ledger": Ledger({"a->b": LinkAccount(3, 2, 1, frames={"DATA": FrameAccount(3, 2, 1)})}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_records_are_packed_and_little_endian(name):
    dtype, size = LAYOUTS[name]
    assert dtype.itemsize == size
    assert all(field[0].str[0] in "<|" for field in dtype.fields.values())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_read_back(tmp_path, name):
    document = DOCUMENTS[name]
    document.write(tmp_path / "x.json")
    assert type(document).read(tmp_path / "x.json") == document


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_missing_document_is_none(tmp_path, name):
    assert type(DOCUMENTS[name]).read(tmp_path / "x.json") is None


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("damage", ["", "{", "[]", '{"schema": "other"}', "\xff"])
def test_a_damaged_document_names_its_file(tmp_path, name, damage):
    (tmp_path / "x.json").write_bytes(damage.encode("latin-1"))
    with pytest.raises(DocumentError, match=r"^x\.json: "):
        type(DOCUMENTS[name]).read(tmp_path / "x.json")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_lacks_a_field_names_its_file(tmp_path, name):
    DOCUMENTS[name].write(tmp_path / "x.json")
    schema = read_document(tmp_path / "x.json")["schema"]
    write_document(tmp_path / "x.json", {"schema": schema})
    with pytest.raises(DocumentError, match=r"^x\.json: "):
        type(DOCUMENTS[name]).read(tmp_path / "x.json")


def test_lists_of_counters_and_errors_are_read_back(tmp_path):
    counters = [CounterFacts(60, 5, 6, 1, 0, "rcv-pos", "00" * 112, 64)]
    write_counters(tmp_path / "c.json", counters)
    assert read_counters(tmp_path / "c.json") == counters
    errors = [ErrorObservation(2, 10, 20, "no space")]
    write_error_log(tmp_path / "e.json", errors)
    assert read_error_log(tmp_path / "e.json") == errors
    assert read_counters(tmp_path / "none") is None
    assert read_error_log(tmp_path / "none") is None
    assert read_samples(tmp_path / "none") is None


def test_a_document_is_replaced_atomically(tmp_path):
    write_document(tmp_path / "x.json", {"schema": "s", "value": 1})
    write_document(tmp_path / "x.json", {"schema": "s", "value": 2})
    assert read_document(tmp_path / "x.json") == {"schema": "s", "value": 2}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_records_are_appended_and_an_incomplete_one_is_left_out(tmp_path):
    file = tmp_path / "sub" / "d.bin"
    rows = np.array([(64, 3, -1), (128, 40, -1)], dtype=delivery.DELIVERY)
    write_records(file, rows[:1])
    append_records(file, rows[1:])
    assert delivery.read_deliveries(file).tolist() == rows.tolist()
    assert not has_torn_tail(file, delivery.DELIVERY)
    file.write_bytes(file.read_bytes()[:-1])
    assert has_torn_tail(file, delivery.DELIVERY)
    assert read_records(file, delivery.DELIVERY).tolist() == rows[:1].tolist()
    assert read_records(tmp_path / "none", delivery.DELIVERY) is None


def test_headers_of_seen_frames_are_fields():
    frames = np.zeros(2, dtype=frame_seen.FRAME_SEEN)
    raw = bytes.fromhex("00010000 00c00100 40000000 ffffffff e9030000 fdffffff 0000000000000000")
    frames["header"][1] = np.frombuffer(raw, dtype=np.uint8)
    header = frame_seen.headers(frames)[1]
    assert header.tolist() == (256, 0, 0xC0, 1, 64, -1, 1001, -3, 0)
    assert frame_seen.headers(frames[:0]).tolist() == []


def test_accounts_show_unaccounted_datagrams():
    assert FrameAccount(received=10, sent=9, dropped=2, duplicated=1).unaccounted == 0
    assert FrameAccount(received=10, sent=9).unaccounted == 1
    link = LinkAccount(datagrams_in=5, datagrams_out=6, datagrams_dropped=1, datagrams_added=2)
    assert link.unaccounted == 0
    link.datagrams_out = 7
    assert link.unaccounted == -1


def test_statistics_of_the_kernel_are_read_by_name():
    text = "Tcp: A\nTcp: 1\nUdp: InDatagrams RcvbufErrors\nUdp: 7 2\nUdpLite: X\nUdpLite: 0\n"
    assert udp_lines(text) == {"InDatagrams": 7, "RcvbufErrors": 2}
    assert udp_lines("") == {}
    facts = SnmpFacts({"RcvbufErrors": 2}, {"RcvbufErrors": 5})
    assert facts.grown("RcvbufErrors") == 3
    assert facts.grown("SndbufErrors") is None


def test_paths_are_those_of_the_format(tmp_path):
    run = SuiteDir(tmp_path).run("loss/reliable-2pct", 7)
    assert run.path.name == run_name("loss/reliable-2pct", 7) == "loss-reliable-2pct-s7"
    subscriber = run.host("b").subscriber("term-64k")
    names = [path.relative_to(run.path).as_posix() for path in vars(subscriber).values()]
    stem = "hosts/b/subscriber-term-64k"
    assert names == [
        stem + end
        for end in (".json", ".index.bin", ".messages.bin", ".times.bin", ".frames.bin", ".log")
    ]
    assert run.capture("a").relative_to(run.path).as_posix() == "captures/a.pcap"
    assert run.host("a").publisher("t").offers.name == "publisher-t.bin"


def test_a_suite_lists_the_runs_that_left_a_manifest(tmp_path):
    suite = SuiteDir(tmp_path)
    for seed in (2, 1):
        suite.run("x", seed).make()
    DOCUMENTS["manifest"].write(suite.run("x", 2).manifest)
    assert suite.runs() == [RunDir(tmp_path / "x-s2")]


def test_suite_ids_sort_by_time_and_differ():
    now = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    ids = {new_suite_id(now) for _ in range(3)}
    assert all(each.startswith("20310203T040506Z-") for each in ids)
    assert len(ids) > 1


def test_files_of_a_killed_driver_are_renamed(tmp_path):
    host = RunDir(tmp_path).host("b")
    host.path.mkdir(parents=True)
    for file in (host.counters, host.pressure, host.driver_log):
        file.write_text(file.name)
    host.save_generation(1)
    kept = sorted(each.name for each in (host.path / "before-1").iterdir())
    assert kept == sorted([host.counters.name, host.pressure.name])
    assert (host.path / "before-1" / host.pressure.name).read_text() == host.pressure.name
    assert [each.name for each in host.path.iterdir() if each.is_file()] == [host.driver_log.name]
