"""What the measured costs of an attack lead to."""

import json

import pytest

from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.fuzz import __main__ as program
from windtunnel.harness.fuzz.budgets import Figures, LatencyStream
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
    """Sets what is measured of a driver in a mode."""
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
def test_a_violation_is_told_and_leaves_the_other_figures(measured, capsys, driver, code):
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


def test_a_driver_that_refuses_new_publications_has_violated_its_budget():
    """Aeron's C driver uses up its counter ids in a flood of sessions."""

    class Client:
        def add_exclusive_publication(self, channel, stream_id):
            raise RegistrationError(ErrorCode.GENERIC_ERROR, "Max counter id (65535) exceeded")

    stream = LatencyStream.__new__(LatencyStream)
    stream._aeron, stream._channel = Client(), "aeron:ipc"
    with pytest.raises(Violation, match=r"refused a new publication .* \(65535\) exceeded"):
        stream.slowest_session()
