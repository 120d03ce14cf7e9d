"""A short attack on an archive, and tests that its checks detect violations."""

import json
import os
import random
import signal

import pytest

from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.fuzz import __main__ as program
from windtunnel.harness.fuzz.archive import archive_attack
from windtunnel.harness.fuzz.archive.archive_attack import ArchiveAttack
from windtunnel.harness.fuzz.archive.damages import removed
from windtunnel.harness.fuzz.finding import Input

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="kernels without the JIT are too slow for it")


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(archive_attack, "LIVES", 1)
    monkeypatch.setattr(ArchiveAttack.epoch, "__defaults__", (1,))

    def run(command, *arguments):
        words = ["--memory", tmp_path / "memory", "--out", tmp_path / "out", "--json", *arguments]
        code = program.main([command, *map(str, words)])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


ATTACK = ("attack", "--against", "archive", "--for-s", 0, "--requests", 300)


def test_a_short_attack_finds_no_violation(run, monkeypatch):
    monkeypatch.setattr(archive_attack, "DAMAGE_SHARE", 1)
    code, output = run(*ATTACK, "--seed", 20269)
    assert code == 0, output
    counts = output[-1]
    assert (counts["requests"], counts["kills"], counts["damages"]) == (300, 1, 1)
    assert counts["refusals"] >= 1
    assert counts["replays"] >= 2


def lose_all_segments(attack):
    """Lose all recorded data, as a defective archive might. A last segment alone may be empty."""
    for recording in attack.recordings:
        first, *others = sorted(
            (attack.folder / "archive").glob(f"{recording.recording_id}-*.rec"),
            key=lambda path: int(path.stem.split("-")[1]),
        )
        first.write_bytes(bytes(first.stat().st_size))
        for path in others:
            path.unlink()


def overwrite_a_message(attack):
    for recording in attack.recordings:
        path = attack.folder / "archive" / f"{recording.recording_id}-0.rec"
        with path.open("r+b") as file:
            file.seek(32)
            file.write(b"\xff\xfe\xfd")


@pytest.mark.full
@pytest.mark.parametrize(
    ("defect", "text"),
    [(lose_all_segments, "expected a stop position from"), (overwrite_a_message, "is wrong")],
)
def test_lost_data_is_found_and_the_finding_is_replayed(defect, text, run, monkeypatch):
    kill = ArchiveAttack._kill

    def kill_and_lose(attack, process, item):
        kill(attack, process, item)
        defect(attack)

    monkeypatch.setattr(archive_attack, "DAMAGE_SHARE", 1 << 30)
    with monkeypatch.context() as patch:
        patch.setattr(ArchiveAttack, "_kill", kill_and_lose)
        code, output = run(*ATTACK)
        assert code == 1
        assert text in output[-1]["violation"]
        if defect is lose_all_segments:
            return
        code, again = run("replay", "--finding", output[-1]["file"])
        assert code == 1
        assert text in again[-1]["violation"]


def test_an_archive_that_exits_is_found(run, monkeypatch):
    turn = ArchiveAttack._turn

    def kill_archive(attack, process):
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.wait(60)
        turn(attack, process)

    monkeypatch.setattr(ArchiveAttack, "_turn", kill_archive)
    code, output = run(*ATTACK)
    assert code == 1
    assert "the archive exited: exit code -9" in output[-1]["violation"]


@pytest.mark.full
def test_an_archive_that_starts_with_an_empty_catalog_is_found(tmp_path, monkeypatch):
    """A recording that is missing from a new catalog is a violation."""
    attack = ArchiveAttack(tmp_path, 1)

    def damage(item):
        for path in (tmp_path / "archive-attack" / "archive").iterdir():
            path.unlink()

    monkeypatch.setattr(attack, "_damage", damage)
    inputs = [Input("kill", 0, b""), Input("damage", 0, random.Random(1).randbytes(8))]
    with pytest.raises(archive_attack.Violation, match="is not listed"):
        attack.replay(inputs)
    assert removed(random.Random(1), b"") is None
