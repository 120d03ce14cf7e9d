"""Damaged contents: equal for equal seeds, of all kinds, and without exceptions."""

import gzip
import json
import lzma
import random

import pytest

from windtunnel.harness.fuzz.tools.damage import (
    ABSENT,
    FIFO,
    FILE,
    FOLDER,
    LINK,
    LINKS,
    damage,
    damaged_bytes,
)

CONTENT = bytes(4_096) + b"frame" * 200 + bytes(4_096)
DOCUMENT = json.dumps({"schema": "x/1", "list": [1, 2.5, {"a": None}], "text": "t"}).encode()
FILES = {
    "capture.pcap": CONTENT, "empty.bin": b"", "short.bin": b"abc", "run.json": DOCUMENT,
    "no.json": b"no JSON", "a.yaml": b"schema: x\nlist: [1, 2]\n", "empty.yaml": b"",
    "a.pcap.gz": gzip.compress(CONTENT), "a.pcap.xz": lzma.compress(CONTENT), "no.gz": b"no gzip",
}  # fmt: skip


def damages(name, count=400):
    return [damage(random.Random(number), name, FILES[name]) for number in range(count)]


@pytest.mark.parametrize("name", FILES)
def test_equal_seeds_lead_to_equal_damage(name):
    assert damages(name, 60) == damages(name, 60)


@pytest.mark.parametrize("name", ["capture.pcap", "run.json", "a.yaml", "a.pcap.gz"])
def test_most_damages_differ(name):
    assert len(set(damages(name))) > 200


def test_a_file_is_replaced_by_all_kinds():
    found = damages("capture.pcap", 3_000)
    assert {each.kind for each in found} == {FILE, LINK, FIFO, FOLDER, ABSENT}
    assert {each.content.decode() for each in found if each.kind == LINK} == set(LINKS)


def test_changes_of_bytes_prefer_the_parts_that_are_not_zero():
    changed = 0
    for number in range(300):
        made = damaged_bytes(random.Random(number), CONTENT)
        changed += made[4_096:-4_096] != CONTENT[4_096:-4_096] or len(made) != len(CONTENT)
    assert changed > 150


def test_damaged_json_is_mostly_valid_json_with_other_values():
    valid = deep = 0
    for each in damages("run.json"):
        try:
            json.loads(each.content)
            valid += 1
        except ValueError:
            pass
        except RecursionError:
            deep += 1
    assert valid > 200
    assert deep > 0


def test_damaged_archives_are_often_valid_archives():
    found = [each for each in damages("a.pcap.gz", 100) if each.kind == FILE]
    valid = 0
    for each in found:
        try:
            valid += gzip.decompress(each.content) != CONTENT
        except Exception:
            continue
    assert valid > 30
