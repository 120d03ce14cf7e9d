"""A mutated driver is today's with one edit, and takes over what was compiled of the rest."""

import hashlib
import os
import subprocess
import sys

import pytest

from harness.exam import mutated_driver
from harness.exam.mutant import Mutant, MutantError
from harness.orchestrate.privileges import REPOSITORY
from harness.orchestrate.subject import OURS, OURS_WITH_OURS, Pair, Subject

MUTANT = Mutant(
    name="longer-header",
    about="A header has 32 bytes.",
    file="driver/wire/header.py",
    find="DATA_HEADER_LENGTH = 32",
    replace="DATA_HEADER_LENGTH = 64",
    side="receiver",
    scenarios=("exam/loss",),
)


@pytest.fixture
def compiled(monkeypatch):
    """Folders of the mutants that were compiled; nothing is."""
    found = []
    monkeypatch.setattr(mutated_driver, "_compile", lambda environment, home: found.append(home))
    return found


def test_the_copy_differs_by_the_edit_alone(tmp_path, compiled):
    mutated_driver.prepare(MUTANT, tmp_path)
    tree = tmp_path / "longer-header" / "tree"
    differing = [
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "driver").rglob("*.py")
        if (tree / path.relative_to(REPOSITORY)).read_bytes() != path.read_bytes()
    ]
    assert differing == [MUTANT.file]


def test_its_processes_import_the_copy_wherever_they_start(tmp_path, compiled):
    environment = mutated_driver.prepare(MUTANT, tmp_path)
    script = (
        "import driver.wire.header as h, harness; print(h.DATA_HEADER_LENGTH, harness.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment, "NUMBA_DISABLE_JIT": "1"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["64", str(REPOSITORY / "harness" / "__init__.py")]


def test_it_is_made_once_and_again_when_the_edit_is_another(tmp_path, compiled):
    for _ in range(2):
        mutated_driver.prepare(MUTANT, tmp_path)
    assert len(compiled) == 1
    other = MUTANT.model_copy(update={"replace": "DATA_HEADER_LENGTH = 96"})
    mutated_driver.prepare(other, tmp_path)
    assert len(compiled) == 2
    assert "= 96" in (tmp_path / "longer-header/tree" / MUTANT.file).read_text()


def test_an_edit_that_does_not_fit_makes_nothing(tmp_path, compiled):
    other = MUTANT.model_copy(update={"find": "no such text"})
    with pytest.raises(MutantError, match="found it 0 times"):
        mutated_driver.prepare(other, tmp_path)
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
        [f"one/{build_folder(tree / 'driver/wire')}/kernel.nbc", f"two/{own}/kernel.nbc"]
    )


def test_without_a_store_nothing_is_linked(tmp_path):
    assert mutated_driver.seed_kernels(tmp_path / "none", tmp_path / "k", tmp_path / "t") == 0


@pytest.mark.parametrize(
    ("side", "planted"), [("sender", [1, 0]), ("receiver", [0, 1]), ("both", [1, 1])]
)
def test_it_runs_on_its_side_alone(side, planted):
    mutant = MUTANT.model_copy(update={"side": side})
    pair = mutated_driver.planted(OURS_WITH_OURS, mutant, {"PYTHONPATH": "there"})
    assert pair.mutant == MUTANT.name
    for is_planted, subject in zip(planted, pair, strict=True):
        added = {"PYTHONPATH": "there"} if is_planted else {}
        assert subject.environment == {**OURS.environment, **added}
        assert subject.mutant == (MUTANT.name if is_planted else "")


def test_another_driver_cannot_be_mutated():
    other = Pair(OURS, Subject("pyaeron", ("aeronmd",)))
    with pytest.raises(MutantError, match="pyaeron"):
        mutated_driver.planted(other, MUTANT, {})
    sender = MUTANT.model_copy(update={"side": "sender"})
    assert mutated_driver.planted(other, sender, {}).subscriber == other.subscriber
