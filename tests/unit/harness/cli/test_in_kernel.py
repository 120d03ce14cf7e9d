"""`--kernel uml`: the command inside, its time limit, and the error without the kernel."""

from pathlib import Path

import pytest

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.uml import boot, kernel
from windtunnel.harness.uml.kernel import Kernel, NoKernel

NAME = "netem/loss-bursts"


@pytest.fixture
def commands(monkeypatch):
    """The commands that would be run inside; each exits with 2."""
    found = []

    def run(_, command):
        found.append(command)
        return 2

    monkeypatch.setattr(kernel, "find", lambda: Kernel(Path("/bin/true"), "6.1", Path("/")))
    monkeypatch.setattr(boot, "finish", lambda _: None)
    monkeypatch.setattr(boot, "run", run)
    return found


def test_the_same_command_is_run_inside(commands, tmp_path):
    options = ["--seed", "7", "--out", str(tmp_path), "--backend", "relay", "--json"]
    assert main(["run", NAME, "--kernel", "uml", *options]) == 2
    (command,) = commands
    words = " ".join(command.argv[2:])
    assert words.startswith("windtunnel.harness run ")
    for wanted in ("--seed 7", f"--out {tmp_path}", "--fidelity netns", "--backend relay"):
        assert wanted in words
    assert "--json" in words
    assert "--kernel" not in words
    assert "--sabotage" not in words


def test_more_runs_have_more_time(commands):
    main(["run", NAME, "--kernel", "uml"])
    main(["run", NAME, "--kernel", "uml", "--seeds", "3"])
    one, three = (command.timeout_s for command in commands)
    assert three - one == 2 * (one - 180.0)


def test_a_calibration_goes_inside_too(commands, tmp_path):
    options = ["--backend", "netem", "--seed", "4", "--scale", "0.5", "--out", str(tmp_path)]
    assert main(["calibrate", "--kernel", "uml", *options]) == 2
    (command,) = commands
    words = command.argv[2:]
    assert words[:2] == ["windtunnel.harness", "calibrate"]
    assert words[2:8] == ["--backend", "netem", "--seed", "4", "--scale", "0.5"]


def test_an_invalid_scenario_is_reported_before_anything_starts(commands, tmp_path, capsys):
    file = tmp_path / "wrong.yaml"
    file.write_text("schema: windtunnel/1\n")
    assert main(["run", str(file), "--kernel", "uml"]) == exit_code.USAGE
    assert commands == []


def test_without_the_package_it_is_named(monkeypatch, capsys):
    def missing():
        raise NoKernel("linux.uml is not installed; on Debian: apt-get install user-mode-linux")

    monkeypatch.setattr(kernel, "find", missing)
    assert main(["run", NAME, "--kernel", "uml"]) == exit_code.HARNESS
    assert "apt-get install user-mode-linux" in capsys.readouterr().err


def test_a_kernel_that_fails_is_a_harness_error(commands, monkeypatch, capsys):
    def fail(_, command):
        raise boot.BootError("the kernel was not up after 60 s\nKernel panic")

    monkeypatch.setattr(boot, "run", fail)
    assert main(["run", NAME, "--kernel", "uml"]) == exit_code.HARNESS
    assert "Kernel panic" in capsys.readouterr().err


def test_a_flag_has_no_value_inside(commands):
    main(["run", NAME, "--kernel", "uml", "--compress"])
    main(["run", NAME, "--kernel", "uml"])
    with_flag, without = (command.argv for command in commands)
    assert with_flag[with_flag.index("--compress") + 1 :] != ["True"]
    assert "True" not in with_flag
    assert "--compress" not in without
    assert "False" not in without


def test_channel_parameters_are_set_inside(commands):
    main(["run", NAME, "--kernel", "uml", "--receive", "nak-delay=1ms", "--receive", "group=false"])
    words = " ".join(commands[0].argv)
    assert "--receive nak-delay=1ms --receive group=false" in words
