"""The copy is the current driver with all mutants, one of them active, and is compiled once."""

import os
import stat
import subprocess
import sys

import pytest

from windtunnel.driver.kernels.cache import KernelCacheError, require_trusted
from windtunnel.harness.exam import mutated_driver, mutation_source, worker_run
from windtunnel.harness.exam.mutant import NONE, Mutant, MutantError
from windtunnel.harness.exam.mutation_switch import COUNTS, EXECUTIONS, VARIABLE
from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.subjects.subject import OURS, OURS_WITH_OURS, Pair, Subject

RETURN = "return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000"
MUTANT = Mutant(
    name="one-more",
    about="An integer wraps to itself.",
    file="driver/base/arith.py",
    find=RETURN,
    replace=f"{RETURN} + 1",
    side="receiver",
    scenarios=("exam/loss",),
)
OTHER = MUTANT.model_copy(update={"name": "two-more", "replace": f"{RETURN} + 2"})


@pytest.fixture
def compiled(monkeypatch):
    """The fidelities and folders for which a compilation was requested. None is executed."""
    found = []
    monkeypatch.setattr(
        mutated_driver, "_compile", lambda fidelity, environment, home: found.append(fidelity)
    )
    return found


def prepare(folder, *mutants, at_work=MUTANT, fidelity="sim"):
    chosen = mutants or (OTHER, MUTANT)
    return mutated_driver.prepare(at_work, fidelity, mutants=chosen, store=folder)


def tree_of(folder):
    (home,) = folder.iterdir()
    return home / "tree" / "windtunnel"


def read(path):
    file = REPOSITORY / path
    return file.read_text() if file.is_file() else ""


def test_a_folder_that_others_can_write_to_is_refused(tmp_path, compiled):
    """Others could change the code of the copy."""
    prepare(tmp_path)
    (home,) = tmp_path.iterdir()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    home.chmod(0o777)
    require_trusted.cache_clear()
    with pytest.raises(KernelCacheError, match="mode 0777"):
        prepare(tmp_path)


def test_the_copy_differs_by_the_edits_and_the_switch_alone(tmp_path, compiled):
    prepare(tmp_path)
    tree = tree_of(tmp_path)
    differing = {
        path.relative_to(tree).as_posix()
        for path in tree.rglob("*.py")
        if not (REPOSITORY / path.relative_to(tree)).is_file()
        or (REPOSITORY / path.relative_to(tree)).read_bytes() != path.read_bytes()
    }
    called = {path for path in differing if "\n@inlined_kernel\n" in read(path)}
    assert called == {
        "driver/logbuffer/appender.py",
        *(f"driver/media_driver/{each}/{each}.py" for each in ("sender", "receiver")),
    }
    assert not any("\n@inlined_kernel\n" in (tree / each).read_text() for each in called)
    others = {MUTANT.file, mutation_source.SWITCH, mutated_driver.SIMULATOR}
    assert differing - called == others
    program = (REPOSITORY / mutated_driver.SIMULATOR).read_text()
    activated = (tree / mutated_driver.SIMULATOR).read_text()
    assert activated == mutation_source.activating(program)
    assert activated != program


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A folder for one copy, whose kernel is compiled by the first of its processes."""
    return tmp_path_factory.mktemp("store")


# The first process imports numba and compiles a kernel.
@pytest.mark.full(keep=1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("at_work", "value"), [(None, 44), (MUTANT, 45), (OTHER, 46)])
def test_its_processes_import_the_copy_wherever_they_start(
    store, compiled, at_work, value, monkeypatch
):
    counted = store / worker_run.EXECUTIONS_FILE
    counted.write_bytes(bytes(8 * COUNTS))
    monkeypatch.setenv(EXECUTIONS, str(counted))
    environment = prepare(store / "copies", at_work=at_work)
    script = (
        "import windtunnel.driver.base.arith as a, windtunnel.harness as h;"
        "print(a.wrap_i32(44), h.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment, "NUMBA_DISABLE_JIT": "0"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    copy = tree_of(store / "copies")
    assert done.stdout.split() == [str(value), str(copy / "harness/__init__.py")]
    # The kernel was called once. Without an active mutant, both mutants' statements are counted.
    assert worker_run.executions_in(store) == ({0: 1} if at_work else {1: 1, 2: 1})


def test_it_is_compiled_once_for_each_fidelity_and_again_when_an_edit_changes(tmp_path, compiled):
    for _ in range(2):
        prepare(tmp_path)
        prepare(tmp_path, fidelity="netns")
    assert compiled == ["sim", "netns"]
    before = (tree_of(tmp_path) / "harness/warm_up.py").stat().st_mtime_ns
    other = MUTANT.model_copy(update={"replace": f"{RETURN} + 3"})
    prepare(tmp_path, other, at_work=other)
    assert compiled == ["sim", "netns", "sim"]
    assert (tree_of(tmp_path) / "harness/warm_up.py").stat().st_mtime_ns == before


@pytest.mark.full
def test_mutants_are_merged_once_and_again_when_one_changes(tmp_path, compiled, monkeypatch):
    merged = []

    def merge(source, edited):
        merged.append(list(edited))
        return mutation_source.with_mutants(source, edited)

    monkeypatch.setattr(mutated_driver, "with_mutants", merge)
    for _ in range(2):
        assert prepare(tmp_path)[VARIABLE] == "2"
        assert prepare(tmp_path, at_work=None)[VARIABLE] == "0"
    assert len(merged) == 1
    other = MUTANT.model_copy(update={"replace": f"{RETURN} + 3"})
    prepare(tmp_path, OTHER, other, at_work=other)
    prepare(tmp_path)
    assert len(merged) == 3
    assert (tree_of(tmp_path) / MUTANT.file).read_text().count(f"{RETURN} + 1") == 1


def test_an_invalid_edit_creates_no_copy(tmp_path, compiled):
    other = MUTANT.model_copy(update={"find": "no such text"})
    with pytest.raises(MutantError, match="found it 0 times"):
        prepare(tmp_path, other, at_work=other)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("side", "planted"), [("sender", [1, 0]), ("receiver", [0, 1]), ("both", [1, 1])]
)
def test_it_runs_on_its_side_only(side, planted):
    mutant = MUTANT.model_copy(update={"side": side})
    pair = mutated_driver.with_mutant(OURS_WITH_OURS, mutant, {"PYTHONPATH": "there"})
    assert pair.mutant == MUTANT.name
    for is_planted, subject in zip(planted, pair, strict=True):
        added = {"PYTHONPATH": "there"} if is_planted else {}
        assert subject.environment == {**OURS.environment, **added}
        assert subject.mutant == (MUTANT.name if is_planted else "")


def test_a_mutant_does_not_run_on_both_sides():
    pair = mutated_driver.with_mutant(OURS_WITH_OURS, None, {"PYTHONPATH": "there"})
    assert [each.mutant for each in pair] == [NONE, NONE]


def test_another_driver_cannot_be_mutated():
    other = Pair(OURS, Subject("pyaeron", ("aeronmd",)))
    with pytest.raises(MutantError, match="pyaeron"):
        mutated_driver.with_mutant(other, MUTANT, {})
    sender = MUTANT.model_copy(update={"side": "sender"})
    assert mutated_driver.with_mutant(other, sender, {}).subscriber == other.subscriber


def test_the_copy_can_run_a_scenario_of_several_hosts() -> None:
    """The copy has no scenarios of its own."""
    assert mutated_driver.MANY_HOSTS.is_absolute()
    assert mutated_driver.MANY_HOSTS.is_file()
