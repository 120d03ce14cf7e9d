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
def shop(tmp_path, base):
    return Workshop(tmp_path / "shop", base)


def trial(program=JUDGE, kind=FILE, content=b"damaged", name="run/run.json"):
    return Trial(program, {name: Damaged(kind, content)})


def contents(shop):
    return {
        str(path.relative_to(shop.work)): path.read_bytes()
        for path in shop.work.rglob("*")
        if path.is_file()
    }


def test_damage_is_undone(shop):
    before = contents(shop)
    for kind, content in ((FILE, b"x"), (FIFO, b""), (LINK, b"itself"), ("folder", b"")):
        each = trial(kind=kind, content=content)
        shop.prepare(each)
        shop.check(each)
        shop.restore(each)
        assert contents(shop) == before


def test_a_written_verdict_is_allowed_and_removed(shop):
    before, each = contents(shop), trial()
    shop.prepare(each)
    (shop.work / "run" / "verdict.json").write_text("{}")
    shop.check(each)
    shop.restore(each)
    assert contents(shop) == before


def test_an_opened_canary_is_found(shop):
    each = trial(kind=LINK, content=b"canary")
    shop.prepare(each)
    shop.check(each)
    (shop.work / "run" / "run.json").read_bytes()
    with pytest.raises(Violation, match="its target was opened"):
        shop.check(each)


@pytest.mark.parametrize(("name", "text"), [
    ("outside/new", "outside of the folder was written"),
    ("outside/canary", "outside of the folder was written"),
    ("cwd/made", "left in the cwd folder"),
    ("tmp/made", "left in the tmp folder"),
    ("work/run/more.json", "may not write run/more.json"),
    ("work/run/captures/a.pcap", "may not write run/captures/a.pcap"),
])  # fmt: skip
def test_a_written_file_is_found(shop, name, text):
    each = trial()
    shop.prepare(each)
    path = shop.folder / name
    path.write_bytes(b"written, and longer")
    shop._watch.was_opened()
    with pytest.raises(Violation, match=text):
        shop.check(each)


def test_a_written_segment_is_found_without_its_times(shop):
    each = trial(RECOVER, name="archive/0-0.rec")
    shop.prepare(each)
    path = shop.work / "archive" / "1-0.rec"
    facts = path.stat()
    with path.open("r+b") as file:
        file.write(b"U")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with pytest.raises(Violation, match=r"may not write archive/1-0\.rec"):
        shop.check(each)
    shop.restore(each)
    assert path.read_bytes() == b"undamaged"
