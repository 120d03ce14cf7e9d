"""`windtunnel analyze`: its output, and its errors about bad input."""

import json

import pytest

from tests.golden.reader import GOLDEN, load
from tests.naive.checksum import complete
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, Packet, packet
from tests.unit.reports.synthetic_suite import make_suite
from tests.unit.reports.test_page import SMALL
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.cli.root import main
from windtunnel.reports.analysis.reading import totals
from windtunnel.reports.analysis.streams import repair, stream_limit


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main(["analyze", *(str(each) for each in arguments)])
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        return code, output.out, output.err

    return run


@pytest.fixture
def capture(tmp_path):
    def capture(content):
        path = tmp_path / "made.pcap"
        path.write_bytes(content)
        return path

    return capture


def sound(count=1_000):
    return made.pcap(
        [packet(START_NS, made.setup(term_length=1 << 20)), *made.stream_packets(count)]
    )


def test_limits_can_be_raised(run, capture):
    sent = [packet(START_NS, made.data(0, session=number)) for number in range(3)]
    sent += [packet(START_NS, made.data(0), destination=f"10.0.0.{number}") for number in range(4)]
    path = capture(made.pcap(sent))
    code, out, _ = run(path, "--max-streams", 3, "--max-destinations", 3)
    assert code == 2
    assert "PARTIAL: found 4 streams, expected at most 3" in out
    assert "PARTIAL: found 6 destinations of streams, expected at most 3 of one stream" in out
    code, out, _ = run(path, "--max-streams", 7, "--max-destinations", 4)
    assert (code, "PARTIAL" in out) == (0, False)
    code, out, _ = run(path, "--max-totals", 6)
    assert code == 2
    assert "PARTIAL: found more than 6 combinations of stream," in out
    code, out, _ = run(path, "--max-totals", 7)
    assert (code, "PARTIAL" in out) == (0, False)
    _, printed, _ = run("--help")
    out = " ".join(printed.split())
    limits = stream_limit.STREAMS_MAX, stream_limit.DESTINATIONS_MAX, repair.GAPS_MAX
    for limit in (*limits, totals.TOTALS_MAX):
        assert f"[default: {limit}]" in out


def test_describes_a_golden_capture(run, tmp_path):
    path = GOLDEN / "clean" / "capture.pcap.xz"
    code, out, _ = run(path)
    assert code == 0
    assert ": 400 messages to position 1,059,232\n    951 frames in order\n    no gap seen" in out
    assert (
        "the receiver requested 5,792 bytes in 2 gaps, which had been captured here, up to 5,792"
        in out
    )
    code, out, _ = run(path, "--json", "--out", tmp_path / "tables")
    document = json.loads(out)
    assert (code, document["schema"], document["is_partial"]) == (0, "windtunnel-analyze/1", False)
    names = ("captures", "streams", "flows", "gaps")
    assert [len(document[name]) for name in names] == [1, 1, 1, 2]
    assert (tmp_path / "tables" / "gaps" / "vantage_point=capture").is_dir()


def test_a_torn_last_packet_is_left_out(run, capture):
    code, out, _ = run(capture(sound()[:-10]))
    assert code == 2
    assert "999 frames in order" in out
    assert "PARTIAL" in out
    assert "ends inside a packet, so the last 304 bytes were ignored" in out


def test_a_snap_length_that_cuts_frames_is_reported(run, capture):
    batch = made.data(0, bytes(64)) + made.data(96, bytes(64))
    code, out, _ = run(capture(made.pcap([packet(START_NS, batch, snap=96)])))
    assert code == 2
    assert "96 bytes beyond the snap length may contain frames" in out
    assert "1 frame in 1 packet" in out
    code, out, _ = run(capture(made.pcap([packet(START_NS, batch, snap=50)])))
    assert code == 2
    assert "1 packet was captured too short" in out


def test_records_without_length_are_skipped(run, capture):
    empty = [Packet(START_NS, b"", 0), Packet(START_NS, b"", 60)]
    code, out, _ = run(capture(made.pcap([*empty, *made.stream_packets(9), *empty])))
    assert code == 0
    assert "    9 frames in order" in out


def test_packets_with_a_wrong_checksum_are_left_out_and_counted(run, capture):
    first, wrong = (packet(START_NS, made.data(at, bytes(32))) for at in (0, 64))
    damaged = bytes(complete(wrong.captured, 14, True))[:-1] + b"\1"
    code, out, _ = run(capture(made.pcap([first, Packet(START_NS, damaged, len(damaged))])))
    assert code == 0
    assert "1 frame in 2 packets\n1 packet has a wrong checksum: hosts discard such" in out


def test_a_capture_without_aeron_frames_fails(run, capture):
    noise = [packet(START_NS + each, bytes([each]) * 40) for each in range(50)]
    code, out, _ = run(capture(made.pcap(noise)))
    assert (code, out) == (
        1,
        "no Aeron frames in 50 packets: 50 other UDP datagrams, 0 with a wrong checksum, "
        "0 on other ports, 0 not UDP\n",
    )
    code, out, _ = run(capture(bytes(range(256)) * 100))
    assert code == 2
    assert "begins with 00010203: expected the magic number of pcap or pcapng" in out


@pytest.mark.parametrize("to_file", [made.pcap, made.pcapng])
def test_only_a_damaged_block_is_skipped(run, capture, to_file):
    content = bytearray(to_file(made.stream_packets(2_000)))
    middle = len(content) // 2
    content[middle : middle + 500] = b"\xff" * 500
    code, out, _ = run(capture(bytes(content)))
    assert code == 2
    assert "bytes are damaged and were skipped" in out
    assert "1,997 messages" in out or "1,998 messages" in out


def test_an_empty_and_a_missing_file_are_reported(run, capture, tmp_path):
    code, out, _ = run(capture(b""))
    assert code == 2
    assert "is empty: expected a pcap or pcapng file" in out
    code, out, err = run(tmp_path / "gone.pcap")
    assert (code, out) == (64, "")
    assert err.endswith("gone.pcap: no such file\n")


def test_a_bad_file_does_not_affect_another_one(run, tmp_path):
    (tmp_path / "bad.pcap").write_bytes(b"not a capture")
    (tmp_path / "good.pcap").write_bytes(load("clean", "capture.pcap"))
    code, out, _ = run(tmp_path)
    assert code == 2
    assert "951 frames in order" in out
    assert "bad.pcap: begins with 6e6f7420" in out


def test_other_ports_are_left_out(run):
    path = GOLDEN / "clean" / "capture.pcap.xz"
    code, out, _ = run(path, "--port", 9)
    assert code == 1
    assert "1,000 on other ports" in out
    assert run(path, "--port", 0)[0] == 64


def test_missing_java_is_reported_before_anything_is_read(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    code, _, err = run(GOLDEN / "clean" / "capture.pcap.xz", "--spark")
    assert code == 3
    assert "Spark needs Java 17 or newer, and none was found" in err
    assert "local engine" in err


def test_page_messages_and_outcomes_are_written_on_request(run, tmp_path):
    path = GOLDEN / "clean" / "capture.pcap.xz"
    out, page = tmp_path / "tables", tmp_path / "page.html"
    code, text, _ = run(path, "--out", out, "--html", page, "--outcomes", "--messages", "--json")
    document = json.loads(text)
    assert code == 0
    assert len(document["messages"]) == 400
    assert document["images"][0]["crc32"] == 0x226DA110
    assert (out / "outcomes" / "vantage_point=capture" / "part-0.parquet").is_file()
    assert "951 frames in order" in page.read_text()
    assert [each.name for each in out.iterdir() if each.name.startswith(".")] == []


def test_outcomes_need_a_folder(run):
    code, _, err = run(GOLDEN / "clean" / "capture.pcap.xz", "--outcomes")
    assert code == 64
    assert "--outcomes needs --out" in err


def test_a_file_that_cannot_be_written_is_reported(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run(
        GOLDEN / "one-message" / "capture.pcap.xz", "--html", tmp_path / "file" / "page.html"
    )
    assert code == 3
    assert "file" in err
    code, _, err = run(GOLDEN / "one-message" / "capture.pcap.xz", "--out", tmp_path / "file" / "x")
    assert code == 3
    code, _, err = run(
        GOLDEN / "one-message" / "capture.pcap.xz", "--out", tmp_path / "file" / "x", "--outcomes"
    )
    assert code == 3


def test_captures_of_two_hosts_are_reported_by_link(run, tmp_path):
    sent = made.stream_packets(400)
    came = [each._replace(time_ns=each.time_ns + 70_000) for each in sent]
    (tmp_path / "near.pcap").write_bytes(made.pcap(sent))
    (tmp_path / "far.pcap").write_bytes(made.pcap(came[:100] + came[103:]))
    code, out, _ = run(tmp_path)
    assert code == 0
    assert (
        "link near to far, stream 1001: lost 3 of 400 frames sent, retransmits included\n"
        "    delay 70 µs median, 70 µs p99"
    ) in out
    assert "1 gap not repaired (768 bytes)" in out


def test_the_page_of_a_run_folder_is_written_into_it_and_linked_in_the_suites_report(run, tmp_path):
    suite = make_suite(tmp_path / "suite", SMALL)
    (synthetic_run,) = suite.runs()
    assert run(synthetic_run.path, "--report")[0] in (0, 2)
    output = json.loads(synthetic_run.analysis.read_text())
    assert output["schema"] == "windtunnel-run-analysis/1"
    assert any(line.startswith("stream 1001 ") for line in output["summary"])
    assert any(" to b port " in line for line in output["summary"])
    assert ">Summary<" in synthetic_run.analysis_page.read_text()
    report = suite.report.read_text()
    assert f'href="{synthetic_run.path.name}/analysis.html"' in report
    assert not SuiteDir(synthetic_run.path).report.exists()
    alone = tmp_path / "alone"
    synthetic_run.path.rename(alone)
    assert run(alone, "--report")[0] in (0, 2)
    assert 'href="analysis.html"' in SuiteDir(alone).report.read_text()


def test_only_a_single_run_folder_can_get_its_page(run, tmp_path):
    suite = make_suite(tmp_path / "suite", SMALL)
    (synthetic_run,) = suite.runs()
    golden = GOLDEN / "one-message" / "capture.pcap.xz"
    for given in ((golden,), (synthetic_run.path, golden), (suite.path,)):
        code, _, err = run(*given, "--report")
        assert code == 64
        assert "--report needs exactly one CAPTURE" in err
    assert not synthetic_run.analysis.exists()
