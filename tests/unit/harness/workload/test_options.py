"""The command line of workloads: valid and invalid arguments of each role."""

import pytest

from tests.unit.harness.workload.small_case import small_case
from windtunnel.harness.workload import options


@pytest.fixture
def line(tmp_path):
    small_case(tmp_path)

    def make(role, *more, traffic=("--traffic", "one")):
        where = ["--case", str(tmp_path / "case.json"), "--aeron-dir", "/d", "--out", "/o"]
        return [role, *where, *traffic, *more]

    return make


def test_a_workload_finds_its_traffic_and_its_files(line):
    chosen = options.parse(line("subscriber"))
    assert (chosen.role, chosen.traffic.id, chosen.sabotage) == ("subscriber", "one", "")
    assert str(chosen.files.subscriber("one").index) == "/o/subscriber-one.index.bin"


@pytest.mark.parametrize(
    ("role", "sabotage"),
    [(role, name) for role, names in options.SABOTAGES.items() for name in names],
)
def test_a_sabotage_is_an_option_of_its_own_role_only(line, role, sabotage, capsys):
    assert options.parse(line(role, "--sabotage", sabotage)).sabotage == sabotage
    for other in set(options.SABOTAGES) - {role}:
        with pytest.raises(SystemExit) as end:
            options.parse(line(other, "--sabotage", sabotage))
        assert end.value.code == 2
        assert sabotage in capsys.readouterr().err


def test_a_saboteurs_traffic_is_the_first_by_default(line):
    chosen = options.parse(line("saboteur", "--sabotage", "lying-counter", traffic=()))
    assert chosen.traffic.id == "one"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"traffic": ("--traffic", "two")}, "--traffic 'two': expected one of one"),
        ({"traffic": ()}, "--traffic '': expected one of one"),
    ],
)
def test_an_unknown_traffic_is_refused(line, more, text, capsys):
    with pytest.raises(SystemExit):
        options.parse(line("publisher", **more))
    assert text in capsys.readouterr().err


def test_a_saboteur_without_a_sabotage_is_refused(line, capsys):
    with pytest.raises(SystemExit):
        options.parse(line("saboteur"))
    assert "a saboteur needs --sabotage" in capsys.readouterr().err


def test_a_case_that_cannot_be_read_is_refused(line, tmp_path, capsys):
    (tmp_path / "case.json").write_text("{}")
    with pytest.raises(SystemExit):
        options.parse(line("publisher"))
    assert "--case" in capsys.readouterr().err
