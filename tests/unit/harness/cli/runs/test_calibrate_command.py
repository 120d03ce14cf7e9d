"""`windtunnel calibrate`, with the rounds replaced: its table, files and exit codes."""

import json

import pytest

from windtunnel.harness.artifact.run.calibration import Calibration, Measure
from windtunnel.harness.calibration import rounds
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.lab import LabError, Unsupported

HELD = Measure("loss", "loss rate", "%", 5.0, 5.1, 4.9, 5.3, 1000, "4.8 to 5.2")
MISSED = Measure("loss", "burst length", "packets", 5.0, 6.0, 5.9, 6.1, 100, "within 5%", False)


@pytest.fixture
def outcome(monkeypatch):
    """The result of the rounds: a calibration to change, or an error in its place."""
    made = {"result": Calibration("relay", "6.1", 1000, 7, 1, [HELD], [])}

    def calibrate(impairments, backend, packets_per_s, seed, report):
        if isinstance(made["result"], Exception):
            raise made["result"]
        made["asked"] = (backend, packets_per_s, seed)
        return made["result"]

    monkeypatch.setattr(rounds, "calibrate", calibrate)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.privileges.acquire", lambda: None)
    monkeypatch.setattr("windtunnel.harness.orchestrate.labs.labs.require", lambda _: None)
    return made


def test_all_floors_hold(outcome, capsys):
    assert main(["calibrate", "--seed", "7"]) == exit_code.OK
    assert outcome["asked"] == ("relay", 10_000, 7)
    output = capsys.readouterr().out
    assert "4.900 .. 5.300" in output
    assert output.splitlines()[-1].endswith("holds")


def test_a_missed_floor_is_reported_and_exits_1(outcome, capsys):
    outcome["result"].measures.append(MISSED)
    assert main(["calibrate"]) == 1
    assert "MISSED" in capsys.readouterr().out


def test_a_void_round_decides_nothing(outcome, capsys):
    outcome["result"].voids.append("rate: the capture lost packets")
    assert main(["calibrate"]) == exit_code.INCONCLUSIVE
    assert "VOID  rate" in capsys.readouterr().out


def test_writes_document_and_chart(outcome, tmp_path):
    assert main(["calibrate", "--out", str(tmp_path / "new")]) == exit_code.OK
    assert Calibration.read(tmp_path / "new/calibration.json") == outcome["result"]
    assert "Plotly" in (tmp_path / "new/calibration.html").read_text()


def test_json_is_the_document(outcome, capsys):
    main(["calibrate", "--json"])
    assert json.loads(capsys.readouterr().out)["measures"][0]["delivered"] == 5.1


@pytest.mark.parametrize("error", [Unsupported("this kernel has no netem"), LabError("no netem")])
def test_an_unsuitable_machine_is_not_a_missed_floor(outcome, error, capsys):
    outcome["result"] = error
    assert main(["calibrate", "--backend", "netem"]) == exit_code.HARNESS
    assert "no netem" in capsys.readouterr().err
