"""Paths, patterns and folders become files with vantage points."""

import os

import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import pcap
from tests.unit.reports.synthetic_suite import ADDRESSES, RunParameters, make_case
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.reading.capture_files import (
    CapturePathError,
    find_captures,
    host_names,
)


@pytest.fixture
def folder(tmp_path):
    def make(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pcap([]))
        return tmp_path

    return make


def found(*given):
    return [
        (each.vantage_point, each.path.rpartition("/")[2]) for each in find_captures(list(given))
    ]


def test_rotated_files_are_one_capture_in_the_order_of_their_numbers(folder):
    root = folder("pub.pcap", "pub.pcap1", "pub.pcap2", "pub.pcap10")
    assert found(f"{root}/*") == [
        ("pub", "pub.pcap"), ("pub", "pub.pcap1"), ("pub", "pub.pcap2"), ("pub", "pub.pcap10"),
    ]  # fmt: skip


def test_the_vantage_point_is_the_name_without_suffix_and_rotation(folder):
    root = folder("lan_00002_20260101120000.pcapng", "wan.cap")
    assert found(str(root)) == [("lan", "lan_00002_20260101120000.pcapng"), ("wan", "wan.cap")]


def test_a_name_may_be_given_to_a_pattern(folder):
    root = folder("x1.pcap", "x2.pcap")
    assert found(f"left={root}/x*.pcap") == [("left", "x1.pcap"), ("left", "x2.pcap")]


def test_files_of_one_name_in_two_folders_are_two_vantage_points(folder):
    root = folder("one/a.pcap", "two/a.pcap")
    assert [each[0] for each in found(f"{root}/*/a.pcap")] == [f"{root}/one/a", f"{root}/two/a"]


def test_a_run_folder_stands_for_its_captures(folder):
    root = folder("captures/a.pcap", "captures/b.pcap", "other.pcap")
    (root / "captures" / "a.json").write_text("{}")
    assert found(str(root)) == [("a", "a.pcap"), ("b", "b.pcap")]


def test_a_file_that_is_given_twice_counts_once(folder):
    root = folder("a.pcap")
    assert len(found(str(root), f"{root}/a.pcap")) == 1


@pytest.mark.parametrize(
    ("given", "text"),
    [("nope.pcap", "no such file"), ("", "expected a path"), ("n=*.x", "no such")],
)
def test_a_missing_file_is_named(given, text, tmp_path):
    with pytest.raises(CapturePathError, match=text):
        find_captures([f"{tmp_path}/{given}" if given == "nope.pcap" else given])


def test_a_folder_without_captures_is_an_error(tmp_path):
    with pytest.raises(CapturePathError, match="expected capture files"):
        find_captures([str(tmp_path)])


def test_the_captures_of_one_run_have_the_names_of_its_hosts(tmp_path):
    names = {}
    for run in (RunDir(tmp_path / "one"), RunDir(tmp_path / "two")):
        run.captures.mkdir(parents=True)
        for host in ADDRESSES:
            run.capture(host).write_bytes(b"")
        make_case("lan", RunParameters()).write(run.case)
        names[run] = {address: host for host, address in ADDRESSES.items()}
        assert host_names(find_captures([str(run.path)])) == names[run]
        assert host_names(find_captures([f"x={run.capture('a')}"])) == names[run]
    assert host_names(find_captures([str(each.path) for each in names])) == {}
    run.case.write_text("{")
    assert host_names(find_captures([str(run.path)])) == {}
    run.case.unlink()
    assert host_names(find_captures([str(run.path)])) == {}


@pytest.mark.parametrize("pattern", ["", "/*"])
def test_captures_that_are_no_regular_files_are_named(tmp_path, pattern):
    (tmp_path / "a.pcap").write_bytes(made.pcap(made.stream_packets(3)))
    os.mkfifo(tmp_path / "b.pcap")
    (tmp_path / "c.pcap").symlink_to(tmp_path / "absent")
    (tmp_path / "d.pcap").mkdir()
    result = analyze([f"{tmp_path}{pattern}"])
    assert result.problems == [
        f"{tmp_path}/{name}.pcap: skipped: expected a regular file" for name in "bc"
    ]
    assert result.captures.num_rows == 1
