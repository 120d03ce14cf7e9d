"""The copy is today's driver with all edits, one at work, and takes over what was compiled."""

import hashlib
import os
import subprocess
import sys

import pytest

from harness.exam import mutated_driver, planting
from harness.exam.mutant import NONE, Mutant, MutantError
from harness.orchestrate.privileges import REPOSITORY
from harness.orchestrate.subject import OURS, OURS_WITH_OURS, Pair, Subject

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
    """What was compiled: fidelities and folders; nothing is."""
    found = []
    monkeypatch.setattr(
        mutated_driver, "_compile", lambda fidelity, environment, home: found.append(fidelity)
    )
    monkeypatch.setattr(mutated_driver, "seed_kernels", lambda source, target, tree: 0)
    return found


def prepare(folder, *mutants, at_work=MUTANT, fidelity="sim"):
    chosen = mutants or (OTHER, MUTANT)
    return mutated_driver.prepare(at_work, fidelity, mutants=chosen, store=folder)


def tree_of(folder):
    (home,) = folder.iterdir()
    return home / "tree"


def test_the_copy_differs_by_the_edits_and_the_switch_alone(tmp_path, compiled):
    prepare(tmp_path)
    tree = tree_of(tmp_path)
    differing = {
        path.relative_to(tree).as_posix()
        for path in tree.rglob("*.py")
        if not (REPOSITORY / path.relative_to(tree)).is_file()
        or (REPOSITORY / path.relative_to(tree)).read_bytes() != path.read_bytes()
    }
    assert differing == {MUTANT.file, planting.SWITCH}
    assert (tree / "harness/simulator/__main__.py").is_file()


# Each of its processes imports numba and compiles a kernel.
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("at_work", "value"), [(None, 44), (MUTANT, 45), (OTHER, 46)])
def test_its_processes_import_the_copy_wherever_they_start(tmp_path, compiled, at_work, value):
    environment = prepare(tmp_path, at_work=at_work)
    script = "import driver.base.arith as a, harness; print(a.wrap_i32(44), harness.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment, "NUMBA_DISABLE_JIT": "0"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split() == [str(value), str(tree_of(tmp_path) / "harness/__init__.py")]


def test_it_is_compiled_once_for_each_fidelity_and_again_when_an_edit_is_another(
    tmp_path, compiled
):
    for _ in range(2):
        prepare(tmp_path)
        prepare(tmp_path, fidelity="netns")
    assert compiled == ["sim", "netns"]
    before = (tree_of(tmp_path) / "harness/kernel.py").stat().st_mtime_ns
    other = MUTANT.model_copy(update={"replace": f"{RETURN} + 3"})
    prepare(tmp_path, other, at_work=other)
    assert compiled == ["sim", "netns", "sim"]
    assert (tree_of(tmp_path) / "harness/kernel.py").stat().st_mtime_ns == before


def test_an_edit_that_does_not_fit_makes_nothing(tmp_path, compiled):
    other = MUTANT.model_copy(update={"find": "no such text"})
    with pytest.raises(MutantError, match="found it 0 times"):
        prepare(tmp_path, other, at_work=other)
    assert not list(tmp_path.iterdir())


def build_folder(folder) -> str:
    return f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"


def test_kernels_of_the_driver_are_linked_under_the_copys_folder(tmp_path):
    store, tree = tmp_path / "store", tmp_path / "tree"
    ours, elsewhere = build_folder(REPOSITORY / "driver/wire"), "wire_of_another_checkout"
    own = build_folder(REPOSITORY / "harness/dissect")
    for module, build in (("one", ours), ("one", elsewhere), ("two", own)):
        (store / module / build).mkdir(parents=True)
        (store / module / build / "kernel.nbc").write_text(module)
    (store / "a-file").write_text("")
    assert mutated_driver.seed_kernels(store, tmp_path / "kernels", tree) == 2
    found = sorted(
        path.relative_to(tmp_path / "kernels").as_posix()
        for path in (tmp_path / "kernels").rglob("*.nbc")
    )
    assert found == sorted(
        [
            f"one/{build_folder(tree / 'driver/wire')}/kernel.nbc",
            f"two/{build_folder(tree / 'harness/dissect')}/kernel.nbc",
        ]
    )


def test_without_a_store_nothing_is_linked(tmp_path):
    assert mutated_driver.seed_kernels(tmp_path / "none", tmp_path / "k", tmp_path / "t") == 0


@pytest.mark.parametrize(
    ("side", "planted"), [("sender", [1, 0]), ("receiver", [0, 1]), ("both", [1, 1])]
)
def test_it_runs_on_its_side_alone(side, planted):
    mutant = MUTANT.model_copy(update={"side": side})
    pair = mutated_driver.plant(OURS_WITH_OURS, mutant, {"PYTHONPATH": "there"})
    assert pair.mutant == MUTANT.name
    for is_planted, subject in zip(planted, pair, strict=True):
        added = {"PYTHONPATH": "there"} if is_planted else {}
        assert subject.environment == {**OURS.environment, **added}
        assert subject.mutant == (MUTANT.name if is_planted else "")


def test_none_stands_on_both_sides():
    pair = mutated_driver.plant(OURS_WITH_OURS, None, {"PYTHONPATH": "there"})
    assert [each.mutant for each in pair] == [NONE, NONE]


def test_another_driver_cannot_be_mutated():
    other = Pair(OURS, Subject("pyaeron", ("aeronmd",)))
    with pytest.raises(MutantError, match="pyaeron"):
        mutated_driver.plant(other, MUTANT, {})
    sender = MUTANT.model_copy(update={"side": "sender"})
    assert mutated_driver.plant(other, sender, {}).subscriber == other.subscriber
