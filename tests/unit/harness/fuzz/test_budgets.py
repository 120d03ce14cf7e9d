"""Budgets for the measured costs of an attack: figures, violations and the table."""

import json
import socket

import pytest

from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.fuzz import __main__ as program
from windtunnel.harness.fuzz import budgets
from windtunnel.harness.fuzz.budgets import Figures
from windtunnel.harness.fuzz.checked_streams import LOOPBACK
from windtunnel.harness.fuzz.finding import Violation

GOOD = {
    "quiet_p99_us": 100.0,
    "hostile_p99_us": 200.0,
    "latency_ratio": 2.0,
    "memory_growth_mib": 1.0,
    "bytes_out_per_byte_in": 1.5,
    "new_reader_s": 0.5,
    "new_session_s": 1.5,
    "hostile_packets_per_s": 10_000.0,
}


@pytest.fixture
def measured(monkeypatch):
    """Set the measured costs of a driver in a mode."""
    figures = {}

    def measure(name, mode, folder, seed):
        found = figures.get((name, mode), {})
        if isinstance(found, Exception):
            raise found
        return Figures(driver=name, mode=mode, **(GOOD | found))

    monkeypatch.setattr(program, "measure", measure)
    monkeypatch.setattr(program.signal, "signal", lambda *_: None)
    return figures


def run(*options):
    return program.main(["budgets", "--memory", "/dev/shm", "--seed", "1", *options])


def test_shows_the_figures_of_both_drivers_side_by_side(measured, monkeypatch, capsys):
    monkeypatch.setattr(program, "find_spec", lambda name: object())
    assert run("--driver", "all") == 0
    heads = capsys.readouterr().out.splitlines()[0].split()
    assert heads == [
        "budget",
        "ours",
        "SHARED",
        "ours",
        "DEDICATED",
        "c",
        "SHARED",
        "c",
        "DEDICATED",
    ]


@pytest.mark.parametrize(("driver", "code"), [("ours", program.VIOLATED), ("pyaeron", 0)])
def test_only_our_driver_has_budgets(measured, capsys, driver, code):
    measured[program.SUBJECT_NAMES[driver], "SHARED"] = {"latency_ratio": 3.1}
    assert run("--driver", driver) == code
    assert "in SHARED mode exceeds its budget for latency_ratio" in capsys.readouterr().out


@pytest.mark.parametrize(("driver", "code"), [("ours", program.VIOLATED), ("pyaeron", 0)])
def test_a_violation_is_reported_with_the_other_figures(measured, capsys, driver, code):
    measured[program.SUBJECT_NAMES[driver], "SHARED"] = Violation("the driver exited")
    assert run("--driver", driver, "--json") == code
    violated, figures = map(json.loads, capsys.readouterr().out.splitlines())
    assert violated == {"violation": "the driver exited", "driver": driver, "mode": "SHARED"}
    assert figures["mode"] == "DEDICATED"


def test_a_violation_in_every_mode_leaves_no_table(measured, capsys):
    for mode in program.MODES:
        measured["ours", mode] = Violation("the driver exited")
    assert run() == program.VIOLATED
    assert len(capsys.readouterr().out.splitlines()) == len(program.MODES)


def test_rounds_without_the_attack_send_its_packets_to_unread_sockets(monkeypatch, tmp_path):
    """Sending takes processor time from the stream, wherever the packets are sent."""
    (port,) = free_ports(1)
    rounds, targets = [], []

    class Flood:
        def __init__(self, folder, port, seed):
            targets.append((port, seed))

        def __enter__(self):
            return self

        def rate(self):
            return 10_000.0

        def __exit__(self, *_):
            pass

    class Stream:
        def run(self, duration_s):
            is_quiet = targets[-1][0] != port
            if is_quiet:
                for offset in (0, budgets.CONTROL_OFFSET):
                    with (
                        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
                        pytest.raises(OSError, match="in use"),
                    ):
                        other.bind((LOOPBACK, targets[-1][0] + offset))
            rounds.append(is_quiet)
            return [1_000 if is_quiet else 2_000] * 100

    monkeypatch.setattr(budgets, "Flood", Flood)
    found = budgets.alternate(Stream(), tmp_path, port, 7, lambda: 1 << 20)
    assert rounds == [True, False] * budgets.ROUNDS
    assert [seed for _, seed in targets[::2]] == [seed for _, seed in targets[1::2]]
    assert found.quiet_p99s_ns == [1_000.0] * budgets.ROUNDS
    assert found.hostile_p99s_ns == [2_000.0] * budgets.ROUNDS
