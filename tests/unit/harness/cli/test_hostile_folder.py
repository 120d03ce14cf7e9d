"""A run folder from an untrusted source: its programs are not run, and paths do not leave it.

Whatever such a folder contains, a command ends by itself with one line and an exit code.
"""

import json
import os

import pytest
import yaml

from tests.unit.harness.cli.replay import test_replay_commands
from tests.unit.harness.verdict.synthetic_run import make_run
from tests.unit.reports.synthetic_matrix import make_matrix
from tests.unit.reports.synthetic_suite import RunParameters, make_suite
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.manifest import Manifest, SubjectFacts
from windtunnel.harness.artifact.run.matrix import Matrix
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import MatrixDir, SuiteDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main

SMALL = RunParameters(frame_count=200)
SECRET = "not yours"
folder = test_replay_commands.folder


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "victim"
    file.write_text(SECRET)
    return file


@pytest.fixture
def suite(tmp_path):
    return make_suite(tmp_path / "suite", SMALL)


@pytest.fixture
def execute(capsys):
    """Run a command. Returns its exit code, its output and the lines of its errors."""

    def execute(*words):
        code = main([str(each) for each in words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return execute


def refused(execute, code, text, *words):
    found, out, err = execute(*words)
    assert (found, out) == (code, "")
    (line,) = err.splitlines()
    assert line.startswith("windtunnel: ")
    assert text in line


# ---- programs that a folder names ----


def subjects(run, **peers):
    manifest = Manifest.read(run.manifest)
    manifest.subjects = {host: SubjectFacts(*each) for host, each in peers.items()}
    manifest.write(run.manifest)


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program"
    file.write_text(f"#!/bin/sh\ntouch {tmp_path}/it-ran\n")
    file.chmod(0o755)
    return f"aeronmd:{file}"


@pytest.fixture
def nothing_starts(monkeypatch):
    """Stop a command where it prepares the drivers, and record which ones."""
    asked = []

    def prepare_drivers(publisher, subscriber, *_):
        asked.append((publisher, subscriber))
        raise KeyboardInterrupt

    monkeypatch.setattr("windtunnel.harness.cli.runs.run.prepare_drivers", prepare_drivers)
    return asked


def failed(run):
    run.verdict.write_text('{"checks": [{"name": "x", "outcome": "FAIL", "text": ""}]}')


@pytest.mark.parametrize("command", ["replay", "shrink"])
@pytest.mark.parametrize("side", ["publisher", "subscriber"])
def test_a_program_that_a_run_names_is_not_run(
    command,
    side,
    folder,
    program,
    execute,
    nothing_starts,
):
    failed(folder)
    subjects(folder, a=(side, program))
    refused(execute, exit_code.USAGE, f"--{side} {program}", command, folder.path)
    assert nothing_starts == []


@pytest.mark.parametrize("command", ["replay", "shrink"])
@pytest.mark.parametrize("named_in", ["case", "scenario"])
def test_an_application_that_a_run_names_is_not_started(
    command,
    named_in,
    folder,
    execute,
    nothing_starts,
):
    failed(folder)
    application = {"id": "one", "host": "a", "command": ["touch", "/tmp/x"], "stop_within_ns": 1}
    if named_in == "case":
        document = json.loads(folder.case.read_text())
        folder.case.write_text(json.dumps(document | {"applications": [application]}))
        text = "programs named by a run folder are not started"
    else:
        written = {"id": "one", "on": "a", "command": ["touch", "/tmp/x"]}
        document = yaml.safe_load(folder.scenario.read_text())
        document |= {"fidelity": ["netns"], "applications": [written]}
        folder.scenario.write_text(yaml.safe_dump(document))
        text = "the scenario starts programs on this machine, such as `touch /tmp/x`"
    refused(execute, exit_code.USAGE, text, command, folder.path)
    assert nothing_starts == []


@pytest.mark.parametrize("command", ["replay", "shrink"])
def test_a_program_is_taken_from_the_command_line(
    command,
    folder,
    program,
    execute,
    nothing_starts,
):
    failed(folder)
    subjects(folder, a=("publisher", program), b=("subscriber", "pyaeron"))
    code, _, _ = execute(command, folder.path, "--publisher", program)
    assert code == exit_code.INTERRUPTED
    assert nothing_starts == [(program, "pyaeron")]


@pytest.mark.parametrize("command", ["replay", "shrink"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sabotage", "--memory"),
        ("mutant", "../../x"),
        ("fidelity", "elsewhere"),
        ("seed", "--keep=/etc"),
        ("seed", -1),
        ("command", [1]),
        ("subjects", {"a": {"side": "publisher", "peer": 7}}),
    ],
)
def test_invalid_values_of_a_manifest_are_refused(
    command,
    key,
    value,
    folder,
    execute,
    nothing_starts,
):
    failed(folder)
    document = json.loads(folder.manifest.read_text())
    folder.manifest.write_text(json.dumps(document | {key: value}))
    text = "peer: expected a string, found 7" if key == "subjects" else key
    refused(execute, exit_code.INCONCLUSIVE, text, command, folder.path)
    assert nothing_starts == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--frames", "--keep=/etc"], "--frames"),
        (["--frames", "-1"], "--frames"),
        (["--sabotage", "--keep=/etc"], "--sabotage"),
    ],
)
def test_options_of_a_trial_are_numbers_and_known_names(
    words,
    text,
    folder,
    execute,
    monkeypatch,
):
    folder.scenario.unlink()
    Manifest("swarm/9", "swarm", 9, "sim", ["windtunnel", "swarm", *words]).write(folder.manifest)
    folder.simulation.write_text(
        '{"schema": "windtunnel-simulation/1", "digest": "d", "datagrams": 1, "changes": 1, '
        '"simulated_ns": 1}'
    )
    monkeypatch.setattr(
        "windtunnel.harness.orchestrate.swarm.run_swarm", lambda *_: pytest.fail("it ran")
    )
    refused(execute, exit_code.INCONCLUSIVE, text, "replay", folder.path)


# ---- files that are written into a folder ----


NEW = ("verdict.json", "report.html", "analysis.json", "analysis.html")


def commands_that_write(suite):
    (run,) = suite.runs()
    return (
        ("judge", run.path),
        ("report", run.path),
        ("report", suite.path),
        ("analyze", "--report", run.path),
    )


def test_planted_names_of_new_files_are_not_written_through(suite, victim, execute):
    (run,) = suite.runs()
    for each in (run.path, suite.path):
        for name in NEW:
            (each / f"{name}.new").symlink_to(victim)
    for words in commands_that_write(suite):
        execute(*words)
        assert victim.read_text() == SECRET
    assert all((run.path / name).is_file() for name in ("verdict.json", "analysis.html"))


def test_a_link_in_place_of_what_is_written_is_replaced(suite, victim, execute):
    (run,) = suite.runs()
    for name in NEW:
        (run.path / name).unlink(missing_ok=True)
        (run.path / name).symlink_to(victim)
    suite.report.symlink_to(victim)
    for words in commands_that_write(suite):
        execute(*words)
        assert victim.read_text() == SECRET
    assert not run.verdict.is_symlink()
    assert not suite.report.is_symlink()


def test_planted_names_of_a_matrix_and_of_tables_are_not_written_through(tmp_path, victim, execute):
    matrix = MatrixDir(tmp_path / "matrix")
    matrix.path.mkdir()
    make_matrix().write(matrix.document)
    (matrix.path / "matrix.html.new").symlink_to(victim)
    assert execute("report", matrix.path)[0] == exit_code.OK
    assert victim.read_text() == SECRET
    tables = tmp_path / "tables"
    tables.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tables / ".gaps.new").symlink_to(tmp_path / "elsewhere")
    (run,) = make_suite(tmp_path / "suite", SMALL).runs()
    execute("analyze", run.path, "--out", tables)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tables / "gaps" / "_common_metadata").is_file()


def test_a_linked_run_is_not_written_into(suite, tmp_path, execute):
    (run,) = suite.runs()
    run.path.rename(tmp_path / "elsewhere")
    run.path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "verdict.json").unlink()
    for command in ("judge", "report"):
        refused(execute, exit_code.INCONCLUSIVE, "found a symbolic link", command, suite.path)
    assert not (tmp_path / "elsewhere" / "verdict.json").exists()


def test_a_report_on_a_capture_is_not_made_of_a_linked_run_beside_it(suite, tmp_path, execute):
    (run,) = suite.runs()
    (tmp_path / "elsewhere").mkdir()
    (suite.path / "other").symlink_to(tmp_path / "elsewhere")
    before = suite.report.read_text() if suite.report.exists() else None
    code, _, err = execute("analyze", "--report", run.path)
    assert code == exit_code.HARNESS
    assert "found a symbolic link" in err
    assert (suite.report.read_text() if suite.report.exists() else None) == before


# ---- files that are read from a folder ----


DOCUMENTS = (
    "run.json", "case.json", "ledger.json", "decisions.bin", "payload.bin", "verdict.json",
    "scenario.yaml", "repro.txt", "analysis.json",
    "captures/a.pcap", "captures/a.json", "hosts/a/counters.bin", "hosts/a/counters.json",
)  # fmt: skip
FIFO = "found a FIFO"


READ_BY = {
    "judge": DOCUMENTS,
    "report": DOCUMENTS,
    "replay": (*DOCUMENTS[:5], "scenario.yaml"),
    "shrink": (*DOCUMENTS[:5], "scenario.yaml"),
    "decisions": ("case.json", "decisions.bin"),
}
"""The documents that each command reads before it starts anything."""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, names in READ_BY.items() for name in names]
)
def test_a_fifo_is_not_waited_for(command, name, folder, execute):
    file = folder.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    for host in ("a", "b"):
        (folder.path / "hosts" / host).mkdir(exist_ok=True)
    code, out, err = execute(command, folder.path)
    if command == "judge":
        assert code in (exit_code.INCONCLUSIVE, exit_code.HARNESS)
    else:
        assert code == (exit_code.OK if command == "report" else exit_code.INCONCLUSIVE)
    if command in ("replay", "shrink", "decisions"):
        assert FIFO in err
        assert out == ""


def test_the_judge_names_a_file_that_is_not_regular(tmp_path, execute):
    made = make_run(tmp_path / "run")
    made.write()
    run = RunDir(tmp_path / "run")
    run.manifest.unlink()
    os.mkfifo(run.manifest)
    code, out, _ = execute("judge", run.path)
    assert code == exit_code.HARNESS
    assert "run.json" in out
    assert FIFO in out


@pytest.mark.parametrize("name", ["run.json", "case.json", "payload.bin", "decisions.bin"])
def test_no_file_is_read_through_a_link(name, folder, victim, execute):
    content = (folder.path / name).read_bytes()
    victim.write_bytes(content)
    (folder.path / name).unlink()
    (folder.path / name).symlink_to(victim)
    for command in ("replay", "shrink"):
        refused(execute, exit_code.INCONCLUSIVE, "found a symbolic link", command, folder.path)
    _, out, _ = execute("judge", "-v", folder.path)
    assert f"{name}: cannot be parsed" in out
    assert "found a symbolic link" in out
    execute("report", folder.path)
    assert victim.read_bytes() == content


def test_the_command_that_made_a_run_is_not_read_through_a_link(suite, victim, execute):
    (run,) = suite.runs()
    run.repro.unlink(missing_ok=True)
    run.repro.symlink_to(victim)
    assert execute("report", run.path)[0] == exit_code.OK
    page = SuiteDir(run.path).report.read_text()
    assert SECRET not in page
    assert "expected a regular file, found a symbolic link" in page


@pytest.mark.parametrize("name", ["captures", "hosts", "hosts/a", "hosts/a/archive"])
@pytest.mark.parametrize("command", ["judge", "report", "analyze"])
def test_a_linked_directory_is_refused(command, name, suite, tmp_path, execute):
    (run,) = suite.runs()
    elsewhere = tmp_path / "elsewhere"
    if (run.path / name).exists():
        (run.path / name).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (run.path / name).symlink_to(elsewhere)
    text = f"{name}: expected a directory, found a symbolic link"
    refused(execute, exit_code.INCONCLUSIVE, text, command, run.path)


def test_a_linked_capture_of_a_run_is_not_analysed(suite, tmp_path, execute):
    (run,) = suite.runs()
    capture = run.capture("a")
    capture.rename(tmp_path / "elsewhere.pcap")
    capture.symlink_to(tmp_path / "elsewhere.pcap")
    refused(execute, exit_code.INCONCLUSIVE, "found a symbolic link", "analyze", run.path)
    assert execute("analyze", tmp_path / "elsewhere.pcap")[0] in (
        exit_code.OK,
        exit_code.INCONCLUSIVE,
    )


def test_the_folder_itself_may_be_named_through_a_link(suite, tmp_path, execute):
    (run,) = suite.runs()
    (tmp_path / "link").symlink_to(suite.path)
    (tmp_path / "run").symlink_to(run.path)
    run.verdict.unlink()
    for path in (tmp_path / "link", tmp_path / "link" / run.path.name, tmp_path / "run"):
        assert execute("judge", path)[1] != ""
        assert run.verdict.is_file()
        assert execute("report", path)[0] == exit_code.OK
        assert execute("analyze", "--report", path)[0] in (
            (exit_code.OK, exit_code.INCONCLUSIVE) if path.name != "link" else (exit_code.USAGE,)
        )
        run.verdict.unlink()


@pytest.mark.parametrize("name", ["../outside", "/tmp", "..", ".", "", "a/b", 7])
def test_a_suite_names_runs_within_itself(name, suite, execute):
    made = json.loads(suite.document.read_text())
    made["runs"][0]["folder"] = name
    suite.document.write_text(json.dumps(made))
    with pytest.raises(
        DocumentError,
        match=r"suite\.json: runs\[0\]\.folder: expected (the name of a subfolder|a string)",
    ):
        Suite.read(suite.document)
    outside = suite.path.parent / "outside"
    outside.mkdir()
    (outside / "repro.txt").write_text(SECRET)
    assert execute("report", suite.path)[0] == exit_code.OK
    assert SECRET not in suite.report.read_text()


@pytest.mark.parametrize("name", ["../outside", "/tmp", "..", "a/b", 7])
@pytest.mark.parametrize("key", ["suite", "folder"])
def test_a_matrix_names_suites_and_runs_within_itself(key, name, tmp_path, execute):
    matrix = MatrixDir(tmp_path / "matrix")
    matrix.path.mkdir()
    make_matrix().write(matrix.document)
    assert Matrix.read(matrix.document) is not None
    made = json.loads(matrix.document.read_text())
    (made["cells"][0] if key == "suite" else made["cells"][0]["runs"][0])[key] = name
    matrix.document.write_text(json.dumps(made))
    refused(execute, exit_code.INCONCLUSIVE, "matrix.json", "report", matrix.path)


@pytest.mark.parametrize("name", ["../../../outside", "/tmp", ".."])
@pytest.mark.parametrize("key", ["from_host", "to_host", "id", "recorded", "replays"])
def test_a_case_names_no_path(key, name, suite, execute):
    (run,) = suite.runs()
    case = json.loads(run.case.read_text())
    case["traffic"][0][key] = name
    run.case.write_text(json.dumps(case))
    code, out, _ = execute("judge", run.path)
    assert code == exit_code.HARNESS
    assert f"case.json: cannot be parsed: traffic[0].{key}: string should" in out


# ---- what a folder or a scenario prints ----

ESCAPE = "\x1b]0;mine\x07\x1b[2J\x9b31m"


def printed(execute, *words):
    _, out, err = execute(*words)
    assert "mine" in out + err
    assert not any(each in out + err for each in "\x1b\x07\x9b")


def scenario(tmp_path, **changes):
    from tests.unit.harness.replay.test_rules import DOCUMENT

    file = tmp_path / "made.yaml"
    file.write_text(yaml.safe_dump({**DOCUMENT, **changes}))
    return file


def test_a_scenario_prints_no_control_characters(tmp_path, execute):
    printed(execute, "explain", scenario(tmp_path, about=f"About {ESCAPE}"))


def test_errors_about_a_scenario_print_no_control_characters(tmp_path, execute):
    printed(execute, "explain", scenario(tmp_path, **{ESCAPE: 1}))
    printed(execute, "explain", scenario(tmp_path, name=ESCAPE))
    printed(execute, "explain", f"{ESCAPE}.yaml")
    (tmp_path / ESCAPE.replace("/", "")).mkdir()
    printed(execute, "judge", tmp_path / ESCAPE)


def test_the_list_prints_no_control_characters(tmp_path, execute, monkeypatch):
    file = scenario(tmp_path, about=f"About {ESCAPE}", name="made")
    monkeypatch.setattr("windtunnel.harness.cli.scenarios.names", lambda *_: ["made"])
    monkeypatch.setattr("windtunnel.harness.cli.scenarios.find", lambda *_: file)
    printed(execute, "list")


def test_a_verdict_prints_no_control_characters(tmp_path, execute):
    made = make_run(tmp_path / "run")
    made.write()
    run = RunDir(tmp_path / "run")
    manifest = Manifest.read(run.manifest)
    manifest.unsupported, manifest.errors = ESCAPE, [ESCAPE]
    manifest.write(run.manifest)
    case = json.loads(run.case.read_text())
    run.case.write_text(json.dumps(case | {"name": ESCAPE}))
    printed(execute, "judge", "-v", run.path)


def test_a_manifest_that_is_refused_prints_no_control_characters(folder, execute):
    subjects(folder, a=("publisher", f"aeronmd:{ESCAPE}"))
    printed(execute, "replay", folder.path)


def test_deeply_nested_json_is_refused(folder, execute):
    folder.manifest.write_text('{"schema": ' + "[" * 100_000)
    refused(execute, exit_code.INCONCLUSIVE, "run.json", "replay", folder.path)
    assert execute("judge", folder.path)[0] == exit_code.HARNESS


def test_an_impossible_case_of_decisions_is_refused(folder, execute):
    folder.case.write_text('{"links": [{"between": 7}], "faults": [1]}')
    refused(execute, exit_code.INCONCLUSIVE, "case.json", "decisions", folder.path)
