"""Shrinking with a function in place of runs, which determines the candidates that fail."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.unit.harness.replay.test_rules import DOCUMENT
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP, HOLD
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.replay.document import KEYS, parse, reduced, text_of
from windtunnel.harness.replay.shrink import (
    BYTES_MIN,
    Origin,
    Shrinking,
    expecting,
    with_bytes,
    with_streams,
)
from windtunnel.harness.replay.trial import Candidate, violated_checks
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.schema.model import Check, Scenario

FAULTS = [
    {
        "id": "lose",
        "where": {"link": "a->b"},
        "what": {"type": "DATA", "stream": 1001},
        "act": {"drop": "5%"},
    },
    {
        "id": "late",
        "where": {"link": "a->b"},
        "what": {"type": "DATA"},
        "act": {"hold": {"share": "5%", "until": {"frames": 3}, "at_most": "5ms"}},
    },
]
CHECKS = ["delivered_once", {"naks_paced": {"traffic": ["t-1001", "t-1002"]}}]


def decisions(count):
    """Return `count` decisions for each rule and stream, on a frame of 1 KiB every 64 KiB."""
    rows = np.zeros(4 * count, dtype=DECISION)
    rows["rule"] = np.repeat([0, 0, 1, 1], count)
    rows["action"] = np.where(rows["rule"] == 0, DROP, HOLD)
    rows["stream_id"] = np.repeat([1001, 1002, 1001, 1002], count)
    rows["frame_type"], rows["frame_length"] = 1, 1024
    rows["session"] = rows["attempt"] = 1
    rows["position"] = np.tile(np.arange(count) * 65_536, 4) + np.repeat([0, 0, 4096, 4096], count)
    return rows


def origin(count=16):
    document = {**DOCUMENT, "faults": FAULTS, "expect": CHECKS}
    return Origin(
        document=document,
        scenario=parse(yaml.safe_dump(document)),
        decisions=decisions(count),
        seed=77,
        check="naks_paced",
        fidelity=("sim", "netns"),
        about="made up",
        header=("Intent", "  made up"),
    )


def frames_of(candidate):
    """Return (action, stream, position) of each frame that a candidate affects."""
    streams = {each.stream_id: each.content.total_bytes for each in candidate.scenario.traffic}
    if candidate.decisions is not None:
        names = {DROP: "drop", HOLD: "hold"}
        found = {
            (names[int(row["action"])], int(row["stream_id"]), int(row["position"]))
            for row in candidate.decisions
        }
    else:
        found = set()
        for fault in candidate.scenario.faults:
            place = fault.what.position
            spans = place.ranges or [place]
            found |= {(fault.act.action, fault.what.streams[0], each.start) for each in spans}
    return {each for each in found if each[2] < streams.get(each[1], 0)}


def shrunk(fails, start=None):
    asked, messages = [], []

    def ask(candidate):
        asked.append(candidate)
        return fails(candidate)

    made = Shrinking(start or origin(), ask, messages.append)
    made.run()
    return made, asked, messages


def test_leaves_only_what_is_needed_to_fail():
    needed = {("hold", 1002, 4096 + 65_536), ("hold", 1002, 4096 + 3 * 65_536)}
    made, asked, messages = shrunk(lambda candidate: needed <= frames_of(candidate))
    assert made.is_sure
    assert frames_of(made.best) == needed
    assert [each.id for each in made.best.scenario.traffic] == ["t-1002"]
    (traffic,) = made.best.scenario.traffic
    assert traffic.content.total_bytes == 262_144
    scenario = parse(made.text())
    assert scenario.seeds.root == 77
    assert [each.name for each in scenario.expect] == ["naks_paced"]
    assert scenario.expect[0].arguments == {"traffic": ["t-1002"]}
    assert [each.act.action for each in scenario.faults] == ["hold"]
    assert made.text().startswith("# Intent\n#   made up\n")
    assert messages[-2:] == [
        "1 rule with 2 ranges: these rules alone fail",
        "rule-1: hold until at_most -> hold for",
    ]
    assert len(asked) < 60


def test_uses_a_simpler_act_if_that_fails_too():
    place = 4096 + 65_536

    def fails(candidate):
        return any(each[1:] == (1001, place) for each in frames_of(candidate))

    made, _, messages = shrunk(fails)
    assert frames_of(made.best) == {("drop", 1001, place)}
    assert messages[-1] == "rule-1: hold until at_most -> drop"


def test_without_any_impairment_no_rule_is_left():
    made, _, _ = shrunk(lambda candidate: True)
    assert made.written_rules() == []
    assert len(made.best.scenario.traffic) == 1
    assert made.best.scenario.traffic[0].content.total_bytes == BYTES_MIN
    assert parse(made.text()).faults == ()


def test_reports_that_its_rules_alone_do_not_fail():
    made, _, messages = shrunk(lambda candidate: candidate.decisions is not None)
    assert not made.is_sure
    assert made.best.decisions is not None
    assert messages[-1].endswith("these rules alone do not fail")


def test_a_decision_beyond_the_end_of_a_shortened_stream_becomes_no_rule():
    """A replay ignores it, but a scenario with a rule that cannot fire is refused."""

    def fails(candidate):
        rows = candidate.decisions
        return rows is None or bool(np.any(rows["position"] == 15 * 65_536))

    made, _, messages = shrunk(fails)
    assert not made.is_sure
    assert made.best.scenario.traffic[0].content.total_bytes == BYTES_MIN
    assert "these decisions cannot be written as rules: " in messages[-1]
    assert "expected a position that the stream reaches" in messages[-1]


def test_no_candidate_is_tried_twice():
    _, asked, _ = shrunk(lambda candidate: ("drop", 1001, 0) in frames_of(candidate))
    keys = [
        (
            str([(t.id, t.content.total_bytes) for t in each.scenario.traffic]),
            b"rules" if each.decisions is None else each.decisions.tobytes(),
        )
        for each in asked
    ]
    passed = [
        key
        for key, each in zip(keys, asked, strict=True)
        if ("drop", 1001, 0) not in frames_of(each)
    ]
    assert len(passed) == len(set(passed))


@pytest.mark.parametrize("limit", range(0, 40, 3))
def test_whenever_it_is_interrupted_the_best_so_far_fails(limit):
    needed = {("drop", 1001, 65_536)}
    count = 0

    def fails(candidate):
        nonlocal count
        count += 1
        if count > limit:
            raise KeyboardInterrupt
        return needed <= frames_of(candidate)

    made = Shrinking(origin(), fails, lambda text: None)
    with suppress(KeyboardInterrupt):
        made.run()
    assert needed <= frames_of(made.best)
    assert needed <= frames_of(Candidate(parse(made.text())))


REPLAYED = Path(__file__).resolve().parents[4] / "scenarios/archive/replay-to-lossy-subscriber.yaml"


def test_a_replay_is_removed_with_its_source_and_has_its_length():
    scenario = load_scenario(REPLAYED)
    assert with_streams(scenario, ["again"]).traffic == ()
    assert [each.id for each in with_streams(scenario, ["orders"]).traffic] == ["orders"]
    shorter = with_bytes(scenario, "orders", 4096)
    assert [each.content.total_bytes for each in shorter.traffic] == [4096, 4096]


def test_a_scenario_with_archives_can_be_written():
    document = yaml.safe_load(REPLAYED.read_text())
    scenario = with_bytes(load_scenario(REPLAYED), "orders", 4096)
    written = reduced(
        document,
        scenario,
        name="made/again",
        about="Made.",
        seed=1,
        fidelity=["netns"],
        faults=[],
    )
    again = parse(text_of(written, ["Made."]))
    assert again.archives == scenario.archives
    assert [each.content.total_bytes for each in again.traffic] == [4096, 4096]


def test_host_events_are_written():
    path = REPLAYED.parents[1] / "host/kill-driver.yaml"
    scenario = load_scenario(path)
    written = reduced(
        yaml.safe_load(path.read_text()), scenario,
        name="made/again", about="Made.", seed=1, fidelity=["netns"], faults=[],
    )  # fmt: skip
    again = parse(text_of(written, ["Made."]))
    assert (again.events, again.timeouts) == (scenario.events, scenario.timeouts)


def test_references_to_other_files_or_rules_are_left_out(tmp_path):
    names = ("expect_frames", "naks_paced", "delivered_once")
    made = origin()
    expect = tuple(Check(name=each) for each in names)
    scenario = made.scenario.model_copy(update={"expect": expect, "checks": ("checks.py",)})
    assert [each.name for each in expecting(scenario, "delivered_once").expect] == [names[2]]
    assert [each.name for each in expecting(scenario, "subject_lived").expect] == [names[1]]
    alone = scenario.model_copy(update={"expect": expect[:1]})
    assert [each.name for each in expecting(alone, "subject_lived").expect] == ["delivered_once"]
    written = reduced(
        {**made.document, "checks": ["checks.py"]}, made.scenario,
        name="made/again", about="Made.", seed=1, fidelity=["netns"], faults=[],
    )  # fmt: skip
    assert "checks" not in written
    assert {each["name"] for each in VERDICT_CHECKS} > set(violated_checks(stored(tmp_path)))
    assert violated_checks(stored(tmp_path)) == {"naks_paced": "too soon"}


VERDICT_CHECKS = [
    {"name": "expect_frames", "outcome": "FAIL", "text": "none", "kind": "timing"},
    {"name": "feed_is_calm", "outcome": "FAIL", "text": "not calm", "kind": "own"},
    {"name": "delivered_once", "outcome": "PASS", "text": "all", "kind": "safety"},
    {"name": "naks_paced", "outcome": "FAIL", "text": "too soon", "kind": "timing"},
]


def stored(folder):
    """Return a run folder whose verdict has the checks VERDICT_CHECKS."""
    found = RunDir(folder)
    found.verdict.write_text(json.dumps({"checks": VERDICT_CHECKS}))
    return found


def test_no_key_of_a_scenario_is_left_out():
    keys = {field.alias or name for name, field in Scenario.model_fields.items()}
    assert keys == set(KEYS)
