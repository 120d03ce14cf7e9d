"""`windtunnel fuzz`: options that do not belong to the attacked program are rejected; all others
reach the program.
"""

import pytest

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main


@pytest.fixture
def started(monkeypatch):
    """The command lines that the command starts."""
    found = []

    def run_program(module, arguments, out):
        found.append([module, *arguments])
        return 0

    monkeypatch.setattr("windtunnel.harness.orchestrate.swarm.run_program", run_program)
    return found


@pytest.mark.parametrize(("against", "words"), [
    ("driver", ["--datagrams", "5000"]), ("archive", ["--requests", "500"]),
    ("tools", ["--files", "100"]),
])  # fmt: skip
def test_the_length_of_an_epoch_reaches_the_program(against, words, started):
    assert main(["fuzz", "--against", against, *words]) == 0
    (found,) = started
    assert found[:2] == ["windtunnel.harness.fuzz", "attack"]
    assert found[found.index("--against") + 1] == against
    assert found[found.index(words[0]) + 1] == words[1]


@pytest.mark.parametrize("words", [
    ["--against", "tools", "--datagrams", "5000"], ["--against", "archive", "--files", "100"],
    ["--requests", "500"], ["--against", "tools", "--driver", "pyaeron"],
    ["--against", "archive", "--budgets"], ["--driver", "all"], ["--for", "soon"],
])  # fmt: skip
def test_options_of_another_program_are_rejected(words, started, capsys):
    assert main(["fuzz", *words]) == exit_code.USAGE
    assert words[-1 if words[-1].startswith("--") else -2] in capsys.readouterr().err
    assert started == []
