"""Kernels are compiled once for each state of their sources, and marked only when that is done."""

import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest

from windtunnel.harness.orchestrate.fidelity import COMPOSE, NETNS, SIM
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.precompile import precompile
from windtunnel.harness.orchestrate.processes import process


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder with copies of a few sources."""
    clone = tmp_path / "clone"
    for name in (*precompile.IMAGE, "driver/base/one.py", "harness/two.py"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("1")
    monkeypatch.setattr(precompile, "ROOT", clone)
    return clone


@pytest.fixture
def commands(monkeypatch):
    """Record commands and their folders instead of running them; `codes` are their exit codes."""
    created = SimpleNamespace(seen=[], codes=[0, 0], programs=precompile.OF_PROCESSES)

    def run_together(argvs, *, env, stdout_to_stderr):
        assert stdout_to_stderr
        words = [argv[argv.index("-m") + 1 :] for argv in argvs]
        created.seen += [(each, env[precompile.CACHE_VARIABLE]) for each in words]
        return [created.codes[created.programs.index(tuple(each))] for each in words]

    monkeypatch.setattr(process, "run_together", run_together)
    return created


@pytest.mark.parametrize(
    "name", ["requirements.lock", "docker/Dockerfile", "driver/base/one.py", "harness/two.py"]
)
def test_a_changed_file_is_another_mark(sources, name):
    before = precompile.mark_name(sources)
    assert precompile.mark_name(sources) == before
    (sources / name).write_text("2")
    assert precompile.mark_name(sources) != before


def test_a_renamed_file_and_another_processor_are_other_marks(sources, monkeypatch):
    before = precompile.mark_name(sources)
    (sources / "harness/two.py").rename(sources / "harness/three.py")
    renamed = precompile.mark_name(sources)
    monkeypatch.setattr(precompile.processor, "levels_of", lambda _: ["another"])
    assert len({before, renamed, precompile.mark_name(sources)}) == 3


def test_a_changed_comment_is_the_same_mark(sources):
    before = precompile.mark_name(sources)
    (sources / "harness/two.py").write_text("# nothing\n1\n")
    assert precompile.mark_name(sources) == before


def test_each_fidelity_has_a_mark_and_programs(sources, commands, tmp_path):
    assert precompile.mark_name(sources, NETNS) == precompile.mark_name(sources, COMPOSE)
    assert precompile.mark_name(sources, NETNS) != precompile.mark_name(sources, SIM)
    commands.programs = precompile.OF_SIMULATOR
    precompile.compile_all(tmp_path, SIM)
    assert sorted(argv for argv, _ in commands.seen) == [
        ["windtunnel.harness.simulator", "warm-up"],
        ["windtunnel.harness.warm_up", "judge"],
    ]
    assert precompile.is_complete(tmp_path, SIM)
    assert not precompile.is_complete(tmp_path, NETNS)


def test_everything_is_compiled_once(sources, commands, tmp_path):
    cache = tmp_path / "cache"
    precompile.compile_all(cache)
    assert sorted(commands.seen) == sorted(
        (list(each), str(cache)) for each in precompile.OF_PROCESSES
    )
    assert precompile.is_complete(cache)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    precompile.compile_all(cache)
    assert len(commands.seen) == len(precompile.OF_PROCESSES)


def test_sources_that_change_meanwhile_are_not_marked(sources, monkeypatch, tmp_path):
    def run_together(argvs, **_):
        (sources / "harness/two.py").write_text("2")
        return [0 for _ in argvs]

    monkeypatch.setattr(process, "run_together", run_together)
    precompile.compile_all(tmp_path)
    assert not precompile.is_complete(tmp_path)


def test_a_failed_compilation_is_named_and_leaves_no_mark(sources, commands, tmp_path):
    commands.codes = [0, 7]
    with pytest.raises(
        LabError, match=r"compiled: windtunnel.driver.warm_up ended with exit code 7$"
    ):
        precompile.compile_all(tmp_path)
    assert not precompile.is_complete(tmp_path)


def test_a_cache_that_cannot_be_written_is_named(sources, commands, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(LabError, match=r"cache: File exists: expected a writable dir"):
        precompile.compile_all(tmp_path / "cache")
    assert not commands.seen


def test_the_program_reports_what_failed(sources, commands, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(precompile.CACHE_VARIABLE, str(tmp_path))
    assert precompile.main() == 0
    (sources / "harness/two.py").write_text("2")
    commands.codes = [3, 0]
    assert precompile.main() == 1
    assert capsys.readouterr().err.endswith("windtunnel.harness.warm_up ended with exit code 3\n")


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("program", precompile.OF_PROCESSES, ids=str)
def test_a_program_that_cannot_print_compiles_all_the_same(program: tuple[str, ...]) -> None:
    """The first run failed if its stderr was full, or was not read any more."""
    command = [sys.executable, "-u", "-m", *program]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
