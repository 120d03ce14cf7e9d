"""`windtunnel bench` with the rounds replaced: nothing is started here."""

import json

import pytest

from windtunnel.harness.bench import machine, rounds
from windtunnel.harness.bench.machine import BenchMachine
from windtunnel.harness.bench.measure import Reading
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.bench.bench_table import number
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.cancel import Cancelled
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.subjects import peers

BUSY = BenchMachine(
    cores=2, processor="a processor", kernel="6.1", python="3.13", load_average=4.0
)  # fmt: skip
STREAM = {"messages": 3e6, "megabytes": 96.0, "processor": 150.0, "rss": 60.0}


@pytest.fixture
def asked(monkeypatch):
    """The settings that the rounds were called with, and the `readings` that they return."""
    seen = {"readings": [Reading("ours", "udp-32", 0, STREAM), Reading("c", "udp-32", 0, STREAM)]}

    def run_rounds(settings, on_start, on_reading):
        seen["settings"] = settings
        if isinstance(seen["readings"], BaseException):
            raise seen["readings"]
        on_start(-1, rounds.C)
        for reading in seen["readings"]:
            on_reading(reading)
        return seen["readings"]

    monkeypatch.setattr(rounds, "run_rounds", run_rounds)
    monkeypatch.setattr(machine, "read_machine", lambda: BUSY)
    monkeypatch.setattr(peers, "java_problem", lambda: seen.get("java_problem", ""))
    return seen


def test_shows_a_row_for_each_figure(asked, capsys):
    assert main(["bench"]) == exit_code.OK
    output = capsys.readouterr()
    row = next(line for line in output.out.splitlines() if line.startswith("udp-32 "))
    assert "3,000,000 .. 3,000,000" in row
    assert row.endswith("1.00  at least 1")
    assert "\x1b" not in output.out + output.err
    assert "client   windtunnel client" in output.out
    assert "machine  2 cores, a processor, Linux 6.1" in output.out
    assert "warm-up: Aeron C driver" in output.err


def test_warns_of_a_busy_machine(asked, capsys):
    main(["bench"])
    output = capsys.readouterr()
    assert "WARNING  the machine was busy: load average 4.00" in output.out
    assert "the machine was busy" in output.err


def test_passes_on_its_options(asked):
    main([
        "bench", "--rounds", "5", "--seconds", "0.5", "--only", "rtt-ipc,udp-1344",
        "--drivers", "ours", "--window", "4m", "--term-length", "64m", "--mtu", "8k",
        "--threading-mode", "shared", "--client-idle", "spin", "--set", "AERON_A=1=2",
        "--ours-set", "AERON_B=",
    ])  # fmt: skip
    settings = asked["settings"]
    assert (settings.rounds, settings.seconds) == (5, 0.5)
    assert settings.cases == ("udp-1344", "rtt-ipc")
    assert settings.drivers == ("ours",)
    assert (settings.window, settings.term_length, settings.mtu) == ("4m", "64m", "8k")
    assert (settings.threading_mode, settings.client_idle) == ("SHARED", "spin")
    assert (settings.both_set, settings.ours_set) == ({"AERON_A": "1=2"}, {"AERON_B": ""})


def test_compares_with_another_program_and_another_client(asked, capsys, tmp_path):
    program = tmp_path / "aeronmd"
    program.touch(mode=0o755)
    assert main(["bench", "--peer", f"aeronmd:{program}", "--client", "pyaeron"]) == exit_code.OK
    settings = asked["settings"]
    assert (settings.peer, settings.client) == (f"aeronmd:{program}", "pyaeron")
    output = capsys.readouterr().out
    assert f"peer     aeronmd:{program}" in output
    assert "client   pyaeron, Aeron's C client for Python" in output
    assert "drivers  ours runs in a Python process" in output


@pytest.mark.parametrize(
    ("peer", "why"),
    [
        ("java", "expected pyaeron or aeronmd: and a path, found 'java'"),
        ("aeronmd:/no", "peer 'aeronmd:/no': expected the path of a media driver, found no such"),
    ],
)
def test_refuses_a_peer_that_cannot_be_started(asked, capsys, peer, why):
    assert main(["bench", "--peer", peer]) == exit_code.USAGE
    assert f"--peer: {why}" in capsys.readouterr().err
    assert "settings" not in asked


def test_refuses_a_window_that_is_no_length(asked, capsys):
    assert main(["bench", "--window", "2x"]) == exit_code.USAGE
    assert "--window: rcv-wnd=2x: expected a number of bytes" in capsys.readouterr().err
    assert "settings" not in asked


def test_archive_selects_all_its_cases(asked):
    main(["bench", "--only", "archive"])
    assert asked["settings"].cases == ("archive-1344", "archive-64")
    main(["bench", "--only", "archive-64,startup", "--drivers", "java"])
    assert (asked["settings"].cases, asked["settings"].drivers) == (
        ("startup", "archive-64"),
        ("java",),
    )
    main(["bench"])
    assert {"archive-1344", "archive-64", "swarm"} < set(asked["settings"].cases)


ARCHIVE = {
    f"{way}-{name}": value
    for way in ("record", "replay")
    for name, value in {"messages": 1e6, "megabytes": 1344.0, "processor": 500.0}.items()
}


def test_figures_of_both_archives_are_printed_and_written(asked, capsys, tmp_path):
    asked["readings"] = [Reading(who, "archive-1344", 0, ARCHIVE) for who in ("ours", "java")]
    file = tmp_path / "bench.json"
    assert main(["bench", "--only", "archive", "--json", str(file)]) == exit_code.OK
    output = capsys.readouterr()
    row = next(line for line in output.out.splitlines() if line.startswith("archive-1344-replay "))
    assert row.split()[2] == "1,000,000"
    assert row.endswith("1.00  at least 1")
    assert "record-messages 1,000,000, replay-messages 1,000,000" in output.err
    assert "LEFT OUT" not in output.out
    document = json.loads(file.read_text())
    assert document["archives"] == {"ours": "windtunnel archive", "java": "Aeron's archive in Java"}
    assert document["left_out"] == {}
    figure = document["figures"][0]
    assert (figure["name"], figure["peer"]) == ("archive-1344-record", "java")
    assert figure["java"]["values"] == figure["ours"]["values"] == [1e6]


def test_a_left_out_archive_is_named_with_the_reason(asked, capsys, tmp_path):
    asked["java_problem"] = "no jar"
    asked["readings"] = [Reading("ours", "archive-1344", 0, ARCHIVE)]
    file = tmp_path / "bench.json"
    assert main(["bench", "--only", "archive", "--json", str(file)]) == exit_code.OK
    output = capsys.readouterr()
    assert "left out: Aeron's archive in Java: no jar" in output.err
    assert "LEFT OUT Aeron's archive in Java: no jar" in output.out
    document = json.loads(file.read_text())
    assert document["left_out"] == {"Aeron's archive in Java": "no jar"}
    assert document["figures"][0]["java"] is None
    assert main(["bench", "--only", "archive", "--enforce"]) == 1
    main(["bench", "--only", "startup"])
    assert "LEFT OUT" not in capsys.readouterr().out.split("WARNING")[-1]


def test_a_void_reading_is_named_and_exits_2(asked, capsys):
    asked["readings"][1] = Reading("c", "udp-32", 1, void="lost or reordered")
    assert main(["bench"]) == exit_code.INCONCLUSIVE
    output = capsys.readouterr()
    assert "VOID     udp-32 of c, round 2: lost or reordered" in output.out
    assert "at least 1 MISSED" in output.out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--floor", "udp-32=1.01"], exit_code.OK),
        (["--floor", "udp-32=1.01", "--enforce"], 1),
        (["--floor", "udp-32=1.0", "--enforce"], exit_code.OK),
        (["--floor", "udp-32-cpu=0.9", "--enforce"], 1),
    ],
    ids=["missed", "missed and enforced", "met", "missed where less is better"],
)
def test_missed_floors_fail_when_they_are_enforced(asked, options, code):
    assert main(["bench", *options]) == code


def test_writes_everything_into_a_document(asked, tmp_path, capsys):
    file = tmp_path / "bench.json"
    assert main(["bench", "--json", str(file)]) == exit_code.OK
    document = json.loads(file.read_text())
    assert document["schema"] == "windtunnel-bench/1"
    assert document["machine"]["load_average"] == 4.0
    assert document["settings"]["window"] == "2m"
    assert document["readings"][0]["values"]["messages"] == 3e6
    figure = document["figures"][0]
    assert figure["name"] == "udp-32"
    assert figure["ours"] == {"median": 3e6, "min": 3e6, "max": 3e6, "values": [3e6]}
    assert (figure["ratio"], figure["floor"], figure["holds"]) == (1.0, 1.0, True)
    assert "udp-32" in capsys.readouterr().out


def test_the_document_may_go_to_stdout_alone(asked, capsys):
    assert main(["bench", "--json", "-"]) == exit_code.OK
    assert json.loads(capsys.readouterr().out)["figures"]


@pytest.mark.parametrize(
    "options",
    [
        ["--only", "udp-33"],
        ["--drivers", "pyaeron"],
        ["--only", "archive-32"],
        ["--set", "AERON_A"],
        ["--set", "=1"],
        ["--floor", "udp-33=1"],
        ["--floor", "none.json"],
        ["--rounds", "0"],
    ],
    ids=" ".join,
)
def test_wrong_options_start_nothing(asked, options, capsys):
    assert main(["bench", *options]) == exit_code.USAGE
    assert "settings" not in asked
    assert capsys.readouterr().err.startswith("windtunnel: ")


@pytest.mark.parametrize(
    ("error", "code"),
    [(LabError("pyaeron is not installed"), exit_code.HARNESS), (Cancelled(2), 130)],
    ids=["refused", "interrupted"],
)
def test_errors_and_interruptions_are_one_line(asked, error, code, capsys):
    asked["readings"] = error
    assert main(["bench"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_numbers_have_significant_digits_only():
    assert [number(each) for each in (1234567.8, 99.94, 9.876, 0.5)] == [
        "1,234,568",
        "99.9",
        "9.88",
        "0.50",
    ]


@pytest.mark.parametrize("case", ["analyze", "lab", "recovery"])
def test_a_case_that_is_selected_alone_is_not_selected_with_others(case, capsys):
    assert main(["bench", "--only", f"udp-1344,{case}"]) == exit_code.USAGE
    assert f"{case} must be selected alone, found udp-1344,{case}" in capsys.readouterr().err


def test_an_unknown_case_is_refused_with_all_cases(capsys):
    assert main(["bench", "--only", "nosuch"]) == exit_code.USAGE
    err = capsys.readouterr().err
    assert "archive, analyze, lab, recovery, found 'nosuch'" in err
    assert "startup" in err
