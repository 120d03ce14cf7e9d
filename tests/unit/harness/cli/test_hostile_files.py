"""Files that a user names and that came from someone else: they are read only if they are regular
files, and nothing is written over a directory.
"""

import os

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from tests.unit.reports.analysis.test_claimed_streams import write_claims
from windtunnel.harness.artifact.regular_file import UnsafeFileError, real_path, replace_file
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main

pytestmark = pytest.mark.timeout(60)
COMMANDS = {
    "explain": (exit_code.USAGE, ()),
    "run": (exit_code.USAGE, ("--fidelity", "sim")),
    "from-capture": (exit_code.INCONCLUSIVE, ("--out", "made.yaml")),
}


@pytest.fixture
def execute(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def execute(*words):
        code = main([str(each) for each in words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return execute


@pytest.mark.parametrize("command", COMMANDS)
def test_a_fifo_is_refused_and_not_waited_for(command, tmp_path, execute):
    os.mkfifo(tmp_path / "file.yaml")
    code, more = COMMANDS[command]
    found, out, err = execute(command, tmp_path / "file.yaml", *more)
    assert (found, out) == (code, "")
    assert "file.yaml" in err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_to_itself_is_refused(command, tmp_path, execute):
    (tmp_path / "file.yaml").symlink_to(tmp_path / "file.yaml")
    code, more = COMMANDS[command]
    assert execute(command, tmp_path / "file.yaml", *more)[0] == code


def test_a_named_file_may_be_a_link(tmp_path, execute):
    (tmp_path / "file.yaml").write_text("schema: windtunnel/1\n")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "file.yaml")
    code, _, err = execute("explain", tmp_path / "link.yaml")
    assert code == exit_code.USAGE
    assert "name" in err
    assert "symbolic link" not in err


def test_a_directory_in_place_of_the_verdict_is_refused_by_name(tmp_path, execute):
    make_run(tmp_path / "run").write()
    run = RunDir(tmp_path / "run")
    run.verdict.mkdir()
    code, _, err = execute("judge", run.path)
    assert code == exit_code.INCONCLUSIVE
    assert err.startswith(f"windtunnel: {run.verdict}: expected a regular file, found a directory")
    assert sorted(run.path.glob(".*")) == []


def test_a_file_is_not_written_over_a_directory(tmp_path):
    (tmp_path / "made").mkdir()
    with pytest.raises(UnsafeFileError, match="made: expected a regular file, found a directory"):
        replace_file(tmp_path / "made", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_the_real_path_of_a_link_to_itself_is_a_path(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert real_path(tmp_path / "loop").name == "loop"


@pytest.mark.parametrize(("cut", "damage"), [(-3, "ends inside a packet"), (0, "")])
def test_a_scenario_from_a_truncated_capture_mentions_it(cut, damage, tmp_path, execute):
    write_claims(tmp_path / "night.pcap", {1: 1})
    write_claims(tmp_path / "day.pcap", {1: 9})
    whole = (tmp_path / "day.pcap").read_bytes()
    (tmp_path / "night.pcap").write_bytes(whole[: cut or None])
    code, _, err = execute("from-capture", "night.pcap")
    assert code == (exit_code.INCONCLUSIVE if damage else exit_code.OK)
    assert (f"NOTE: night.pcap: the capture {damage}" in err) == bool(damage)
    assert ("Not covered" in (tmp_path / "night.yaml").read_text()) is True
    assert ("ends inside a packet" in (tmp_path / "night.yaml").read_text()) == bool(damage)


@pytest.mark.parametrize("has_victim", [True, False])
def test_a_scenario_of_a_capture_is_not_written_through_a_link(tmp_path, execute, has_victim):
    write_claims(tmp_path / "night.pcap", {1: 1})
    victim, link = tmp_path / "victim", tmp_path / "night.yaml"
    if has_victim:
        victim.write_text("secret")
    link.symlink_to(victim)
    code, _, err = execute("from-capture", "night.pcap")
    assert code == exit_code.USAGE
    assert "night.yaml: already exists" in err
    assert execute("from-capture", "night.pcap", "--force")[0] == exit_code.OK
    assert not link.is_symlink()
    assert "schema: windtunnel/1" in link.read_text()
    assert victim.exists() == has_victim
    assert not has_victim or victim.read_text() == "secret"


def test_a_scenario_of_a_capture_is_written_into_a_linked_folder(tmp_path, execute):
    write_claims(tmp_path / "night.pcap", {1: 1})
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert execute("from-capture", "night.pcap", "--out", "link/made.yaml")[0] == exit_code.OK
    assert (tmp_path / "folder" / "made.yaml").is_file()
