"""The folder of a worker: what a command does to it is detected, and undone."""

import os

import pytest

from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.tools.damage import FIFO, FILE, LINK, Damaged
from windtunnel.harness.fuzz.tools.programs import BY_NAME
from windtunnel.harness.fuzz.tools.trial import BaseFiles, Trial
from windtunnel.harness.fuzz.tools.workshop import Workshop

JUDGE, RECOVER = BY_NAME["judge"], BY_NAME["archive recover"]


@pytest.fixture
def base(tmp_path):
    for name in ("run/run.json", "run/captures/a.pcap", "archive/0-0.rec", "archive/1-0.rec"):
        path = tmp_path / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"undamaged")
    return BaseFiles(tmp_path / "base")


@pytest.fixture
def workshop(tmp_path, base):
    return Workshop(tmp_path / "workshop", base)


def trial(program=JUDGE, kind=FILE, content=b"damaged", name="run/run.json"):
    return Trial(program, {name: Damaged(kind, content)})


def contents(workshop):
    return {
        str(path.relative_to(workshop.work)): path.read_bytes()
        for path in workshop.work.rglob("*")
        if path.is_file()
    }


def test_damage_is_undone(workshop):
    before = contents(workshop)
    for kind, content in ((FILE, b"x"), (FIFO, b""), (LINK, b"itself"), ("folder", b"")):
        each = trial(kind=kind, content=content)
        workshop.prepare(each)
        workshop.check(each)
        workshop.restore(each)
        assert contents(workshop) == before


def test_a_written_verdict_is_allowed_and_removed(workshop):
    before, each = contents(workshop), trial()
    workshop.prepare(each)
    (workshop.work / "run" / "verdict.json").write_text("{}")
    workshop.check(each)
    workshop.restore(each)
    assert contents(workshop) == before


def test_an_opened_canary_is_found(workshop):
    each = trial(kind=LINK, content=b"canary")
    workshop.prepare(each)
    workshop.check(each)
    (workshop.work / "run" / "run.json").read_bytes()
    with pytest.raises(Violation, match="its target was opened"):
        workshop.check(each)


@pytest.mark.parametrize(("name", "text"), [
    ("outside/new", "outside of the folder was written"),
    ("outside/canary", "outside of the folder was written"),
    ("cwd/made", "left in the cwd folder"),
    ("tmp/made", "left in the tmp folder"),
    ("work/run/more.json", "may not write run/more.json"),
    ("work/run/captures/a.pcap", "may not write run/captures/a.pcap"),
])  # fmt: skip
def test_a_written_file_is_found(workshop, name, text):
    each = trial()
    workshop.prepare(each)
    path = workshop.folder / name
    path.write_bytes(b"written, and longer")
    workshop._watch.was_opened()
    with pytest.raises(Violation, match=text):
        workshop.check(each)


def test_a_written_segment_is_found_without_its_times(workshop):
    each = trial(RECOVER, name="archive/0-0.rec")
    workshop.prepare(each)
    path = workshop.work / "archive" / "1-0.rec"
    facts = path.stat()
    with path.open("r+b") as file:
        file.write(b"U")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with pytest.raises(Violation, match=r"may not write archive/1-0\.rec"):
        workshop.check(each)
    workshop.restore(each)
    assert path.read_bytes() == b"undamaged"
