"""A short attack on the tools, and tests that its checks detect violations."""

import json
import mmap
import os
import shutil
import sys
import time

import pytest

from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.artifact import regular_file
from windtunnel.harness.cli.replay import decisions
from windtunnel.harness.fuzz import __main__ as program
from windtunnel.harness.fuzz.archive_process import ArchiveProcess
from windtunnel.harness.fuzz.tools import base_files, programs, tools_attack, trial, worker
from windtunnel.harness.fuzz.tools.base_files import make_base_files
from windtunnel.harness.fuzz.tools.damage import LINK, Damaged

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="kernels without the JIT are too slow for it")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The folder of the base files. Its driver must be stopped during the copy, since a running
    one removes log buffers.
    """
    folder = tmp_path_factory.mktemp("made") / "base"
    copytree, made, states = shutil.copytree, [], []

    class Archive(ArchiveProcess):
        def __enter__(self):
            made.append(self)
            return super().__enter__()

    def copy(source, target, *more):
        if not more and target.name == "aeron":
            states.append(base_files._states(made[0].driver.pid))
        return copytree(source, target, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_files, "ArchiveProcess", Archive)
        patch.setattr(shutil, "copytree", copy)
        make_base_files(folder, 1)
    assert states == [{"T"}]
    return folder


@pytest.fixture
def run(base, tmp_path, capsys, monkeypatch):
    """Run the program with base files that were made once. Returns its exit code and output."""
    monkeypatch.setattr(
        tools_attack, "make_base_files", lambda folder, seed: shutil.copytree(base, folder)
    )

    def run(command, *arguments):
        words = ["--memory", tmp_path / "memory", "--out", tmp_path / "out", "--json", *arguments]
        code = program.main([command, *map(str, words)])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture
def only(monkeypatch):
    """Attack only one command."""

    def only(name):
        monkeypatch.setattr(trial, "PROGRAMS", (programs.BY_NAME[name],))

    return only


def test_a_short_attack_finds_no_violation(run):
    code, output = run("attack", "--against", "tools", "--for-s", 0, "--files", 60, "--seed", 20268)
    assert code == 0, output
    assert output[-1]["files"] >= 60


def raise_index_error(*_):
    raise IndexError("a planted defect")


def wait_for_ever(*_):
    time.sleep(100)


def end_process(*_):
    os.kill(os.getpid(), 9)


def write_elsewhere(*_):
    with open("../outside/new", "w"):
        return []


def print_much(*_):
    print("x" * (worker.PRINTED_MAX + 1))
    return []


def use_memory(*_):
    # Not from the heap, which may have enough resident pages.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, worker.MEMORY_GROWTH_MAX + (8 << 20), flags).close()
    return []


def end_with_exit_code_1(*_):
    sys.exit(1)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("defect", "text"),
    [
        (raise_index_error, "a planted defect"),
        (wait_for_ever, "did not end within"),
        (end_process, "the process of the command ended: -9"),
        (write_elsewhere, "outside of the folder was written"),
        (print_much, "the command printed"),
        (use_memory, "memory has grown by"),
        (end_with_exit_code_1, "exit code 141"),
    ],
)
def test_a_planted_defect_is_found_and_replayed(defect, text, base, run, only, monkeypatch):
    only("decisions")
    monkeypatch.setattr(worker, "MEMORY_GROWTH_MAX", 32 << 20)
    monkeypatch.setattr(worker, "PRINTED_MAX", 1 << 20)
    if defect is wait_for_ever:
        monkeypatch.setattr(worker, "CPU_S_MAX", 0.5)
        monkeypatch.setattr(worker, "HANG_S_MAX", 1.0)
    rule_ids, undamaged = decisions.rule_ids, (base / "run" / "case.json").read_text()

    def defective(case):
        is_undamaged = regular_file.read_text(case) == undamaged
        return rule_ids(case) if is_undamaged else defect()

    attack = ("attack", "--against", "tools", "--for-s", 0, "--files", 12)
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "rule_ids", defective)
        code, output = run(*attack)
        assert code == 1
        found = next(each for each in output if "violation" in each)
        assert text in found["violation"]
        code, output = run("replay", "--finding", found["file"])
        assert code == 1
        assert text in output[-1]["violation"]
    assert run("replay", "--finding", found["file"]) == (0, [{"violation": None}])


@pytest.mark.full
def test_a_followed_link_is_found(run, only, monkeypatch):
    only("decisions")
    follows = regular_file._READ & ~os.O_NOFOLLOW
    monkeypatch.setattr(regular_file, "_READ", follows)
    monkeypatch.setattr(trial, "damage", lambda *_: Damaged(LINK, b"canary"))
    code, output = run("attack", "--against", "tools", "--for-s", 0, "--files", 4)
    assert code == 1
    assert "a link out of the folder was followed" in str(output)


def test_a_result_that_changes_for_undamaged_files_is_found(run, only, monkeypatch):
    only("decisions")
    calls = []

    def link_names(case):
        calls.append(case)
        return [str(len(calls))] * 9

    monkeypatch.setattr(decisions, "link_names", link_names)
    code, output = run("attack", "--against", "tools", "--for-s", 0, "--files", 20)
    assert code == 1
    assert "with undamaged files" in str(output)
