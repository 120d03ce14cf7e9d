"""YAML files made to exhaust or confuse the reader: each is refused with its place, at once."""

import time

import pytest

from tests.unit.harness.scenario.test_known_failures import CHECKS
from tests.unit.harness.scenario.test_known_failures import GOOD as GOOD_KNOWN
from tests.unit.harness.scenario.test_scenario_loader import GOOD, changed, faults_of
from windtunnel.harness.scenario import yaml_document
from windtunnel.harness.scenario.known import load_known
from windtunnel.harness.scenario.loader import load_scenario, parse_scenario
from windtunnel.harness.scenario.schema.model import EXPECT_MAX
from windtunnel.harness.scenario.schema.units import BYTES_MAX, DURATION_NS_MAX
from windtunnel.harness.scenario.yaml_document import (
    DEPTH_MAX,
    ERRORS_MAX,
    FILE_BYTES_MAX,
    VALUES_MAX,
    ScenarioError,
)

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ABOUT = "about: Made up."


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (ABOUT, f"{ABOUT}\n{LAUGHS}", "4:4: anchor &a is not supported"),
        (ABOUT, "about: *other", "3:8: alias *other is not supported"),
        (ABOUT, "about: &self Made up.", "3:8: anchor &self is not supported"),
        (ABOUT, "<<: {about: x}", "3:1: <<: unknown key"),
        (ABOUT, "about: !!python/object:os.system {}", "3:8: tag '"),
        (ABOUT, "about: !!python/object/apply:os.system [id]", "3:8: tag '"),
        (ABOUT, "about: !!binary Zg==", "3:8: tag '"),
        (ABOUT, "about: !!binary ' '", "3:8: tag '"),
        (ABOUT, "about: !!int x", "3:8: tag '"),
        (ABOUT, "about: !!timestamp x", "3:8: tag '"),
        (ABOUT, "about: !other x", "3:8: tag '"),
        (ABOUT, "about: 7", "3:1: about: expected a text"),
        ("root: 0x10", "root: 2026-13-45", "4:9: seeds.root: expected an integer"),
        ("root: 0x10", "root: " + "9" * 5000, "4:15: expected a 64-bit integer"),
        ("root: 0x10", f"root: {1 << 63}", "4:15: expected a 64-bit integer"),
        ("root: 0x10", f"root: 0x{1 << 64:x}", "4:15: expected a 64-bit integer"),
        ("root: 0x10", "root: 1" + ":1" * 100_000, "4:9: seeds.root: expected an integer"),
        ("root: 0x10", "root: 1:30", "4:9: seeds.root: expected an integer, found '1:30'"),
        ("root: 0x10", "root: 1:30.5", "4:9: seeds.root: expected an integer, found '1:30.5'"),
        ("root: 0x10", "root: 012", "4:9: seeds.root: expected an integer, found '012'"),
        ("root: 0x10", "root: -07_1", "4:9: seeds.root: expected an integer, found '-07_1'"),
        ("root: 0x10", "root: 0o", "4:9: seeds.root: expected an integer"),
        ("root: 0x10", "root: .inf", "4:15: expected a finite number, found .inf"),
        ("root: 0x10", "root: .nan", "4:15: expected a finite number, found .nan"),
        ("root: 0x10", "root: 1" + "0" * 400 + ".5", "4:15: expected a finite number, found 1"),
        (ABOUT, "about: " + "[" * 200_000, "3:"),
        (ABOUT, "about: " + "{a: " * 2000, "3:"),
        (ABOUT, "about:\n" + "- " * 2000, "4:"),
        (ABOUT, "about: " + "? " * 2000, "3:"),
        (ABOUT, "about: " + "[" * 200 + "]" * 200, f"3:{8 + DEPTH_MAX - 1}: expected at most"),
        (ABOUT, "? [a, b]\n: x", "3:3: expected a string as a key"),
        (ABOUT, "? {a: b}\n: x", "3:3: expected a string as a key"),
        (ABOUT, f"{ABOUT}\n---\nabout: again", "4:1: expected one YAML document, found a second"),
    ],
)
def test_refuses_yaml_features_that_scenarios_do_not_have(old, new, fault):
    began = time.monotonic()
    faults = faults_of(changed(old, new))
    assert [each for each in faults if each.startswith(f"made.yaml:{fault}")], faults
    assert max(len(each) for each in faults) < 600
    assert time.monotonic() - began < 5


SIZE = "expected a size of at most 1024GiB"
DURATION = "expected a duration of at most 10080min"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("1MiB", "999999999999999999999999GiB", f"17:15: traffic[0].content.bytes: {SIZE}, found"),
        ("1MiB", f"{BYTES_MAX + 1}B", f"17:15: traffic[0].content.bytes: {SIZE}, found"),
        ("1MiB", "9" * 5000 + "B", f"17:15: traffic[0].content.bytes: {SIZE}, found"),
        ("1MiB", "0." + "0" * 5000 + "1B", "17:15: traffic[0].content.bytes: expected"),
        # Rounded to 28 digits, this would be a whole number of bytes.
        ("1MiB", "1." + "0" * 40 + "1KiB", "17:15: traffic[0].content.bytes: expected a whole"),
        ("wall: 20s", f"wall: {DURATION_NS_MAX + 1}ns", f"24:10: budget.wall: {DURATION}, found"),
        ("wall: 20s", "wall: 99999999999999999999min", f"24:10: budget.wall: {DURATION}, found"),
        ("drop: 2%", "drop: 999999999999999999999%", "19:63: faults[0].act.drop: expected a sh"),
        (
            "backend: relay",
            "backend: relay, impairments: {both: {rate: 99999999999Gbit/s}}",
            "8:64: network.link.impairments.both.rate: expected a rate of at most 1000Gbit/s",
        ),
        (
            "message: {from: 1B, to: max}",
            "pace: {rate: 9999999999GiB/s}",
            "17:35: traffic[0].content.pace.rate: expected a rate of at most 1024GiB/s, found",
        ),
        ("term-length=64k", "term-length=" + "9" * 5000, "15:5: traffic[0].channel: "),
        ("term-length=64k", "term-length=64k|rcv-wnd=99999999999g", "15:5: traffic[0].channel: "),
        ("term-length=64k", "term-length=64k|gtag=" + "9" * 50, "15:5: traffic[0].channel: "),
        ("term-length=64k", "term-length=64k|nak-delay=" + "9" * 50, "15:5: traffic[0].channel: "),
        ("term-length=64k", "term-length=64k|fc=max,t:" + "9" * 50, "15:5: traffic[0].channel: "),
        ("term-length=64k", "term-length=64k|fc=min,g:/" + "9" * 50, "15:5: traffic[0].channel: "),
        ("${b}:24325|", "²24.0.1.1:24325|", "15:5: traffic[0].channel: expected"),
        ("${b}:24325|", "${b}:²|", "15:5: traffic[0].channel: expected endpoint=HOST:PORT"),
        ("  - delivered_once", "  - {delivered_once: {to: [[a]]}}", "22:"),
        ("  - delivered_once", "  - {delivered_once: {to: {a: b}}}", "22:"),
        ("  - delivered_once", "  - {delivered_once: {applies: ['ours>=%s']}}" % ("9" * 50), "22:"),
        ("  - delivered_once", "  - {delivered_once: {applies: 5}}", "22:"),
    ],
)
def test_a_quantity_has_an_upper_bound_that_the_error_names(old, new, fault):
    faults = faults_of(changed(old, new))
    assert [each for each in faults if each.startswith(f"made.yaml:{fault}")], faults
    assert max(len(each) for each in faults) < 600


def test_the_greatest_quantities_are_read():
    text = changed("bytes: 1MiB", "bytes: 1.5MiB").replace("wall: 20s", "wall: 10080min")
    scenario = parse_scenario(text, "made.yaml")
    assert scenario.traffic[0].content.total_bytes == 3 << 19
    assert scenario.budget.wall_ns == DURATION_NS_MAX


def test_content_of_too_many_messages_is_refused():
    faults = faults_of(changed("bytes: 1MiB, message: {from: 1B, to: max}",
                               "bytes: 1GiB, message: {from: 1B, to: 1B}"))  # fmt: skip
    assert [each for each in faults if "expected at most 16777216 messages" in each], faults


def test_a_long_list_of_checks_is_refused_at_once():
    began = time.monotonic()
    faults = faults_of(changed("  - delivered_once\n", "  - delivered_once\n" * 20_000))
    assert [each for each in faults if f"at most {EXPECT_MAX} items" in each], faults
    assert time.monotonic() - began < 20


def test_the_list_of_errors_is_bounded():
    faults = faults_of(changed("traffic:", "traffic:\n" + "  - x\n" * 5000))
    assert len(faults) == ERRORS_MAX + 1
    assert "more errors" in faults[-1]


# Reading as much as the real limits permit takes 25 s of CPU time.
REAL_LIMITS = pytest.param(VALUES_MAX, FILE_BYTES_MAX, marks=pytest.mark.full)


@pytest.mark.parametrize(("values_max", "bytes_max"), [(1_000, 10_000), REAL_LIMITS])
def test_the_file_and_the_number_of_values_are_bounded(
    tmp_path, monkeypatch, values_max, bytes_max
):
    monkeypatch.setattr(yaml_document, "VALUES_MAX", values_max)
    monkeypatch.setattr(yaml_document, "FILE_BYTES_MAX", bytes_max)
    many = f"about: [{'x,' * values_max}]"
    assert f"expected at most {values_max} values" in faults_of(changed(ABOUT, many))[0]
    file = tmp_path / "made.yaml"
    file.write_text(GOOD + "#" * bytes_max)
    with pytest.raises(ScenarioError, match=rf"made\.yaml: expected at most {bytes_max} byte"):
        load_scenario(file)
    file.write_text(GOOD + "#" * (bytes_max - len(GOOD)))
    assert load_scenario(file).seeds.root == 16


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("known:", f"{LAUGHS}known:", ":2:4: anchor &a is not supported"),
        ("owner: Jane Doe", "owner: !!python/name:os.system x", ":6:12: tag '"),
        ("2027-03-31", "2027-13-31", ":8:5: known[0].expires: expected a date such as 2027-03-31"),
        ("2027-03-31", "2027-03-31T01:00:00Z", ":8:5: known[0].expires: expected a date"),
        ("2027-03-31", "9" * 5000, ":8:14: expected a 64-bit integer"),
        ("owner: Jane Doe", "owner: " + "[" * 100_000, ":6:"),
    ],
)
def test_a_file_of_known_failures_has_the_same_bounds(tmp_path, old, new, fault):
    file = tmp_path / "known.yaml"
    file.write_text(GOOD_KNOWN.replace(old, new, 1))
    with pytest.raises(ScenarioError) as raised:
        load_known(file, CHECKS)
    assert [each for each in raised.value.errors if fault in each], raised.value.errors


def test_a_device_is_refused_as_a_file_of_known_failures(tmp_path):
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_known(tmp_path, CHECKS)
