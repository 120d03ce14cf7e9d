"""Resolving a scenario: all values are in the case, which is read back from its file unchanged."""

import json
from pathlib import Path

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.middlebox.decision import ACTIONS, LINKS
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.scenario.explain.explain import expected_data_frames, explain
from windtunnel.harness.scenario.json_schema import json_schema
from windtunnel.harness.scenario.loader import load_scenario, parse_scenario
from windtunnel.harness.scenario.resolved.case import LINK_NAMES, Case, Payload
from windtunnel.harness.scenario.resolved.resolution import resolve, run_seeds
from windtunnel.harness.scenario.schema.act import ACTIONS as SCENARIO_ACTIONS
from windtunnel.harness.scenario.schema.forged import FLAG_BITS
from windtunnel.harness.scenario.validation.traffic_validation import longest_message

PAYLOAD = Payload(path="payload.bin", sha256="ab" * 32, length_bytes=1000)
ADDRESSES = {"a": "10.64.0.3", "b": "10.64.0.19"}

SCENARIOS = Path(__file__).resolve().parents[5] / "scenarios"


def resolved(text=GOOD, seed=16):
    scenario = parse_scenario(text, "made.yaml")
    return resolve(scenario, seed=seed, fidelity="netns", addresses=ADDRESSES, payload=PAYLOAD)


def test_contains_all_values():
    case = resolved()
    (traffic,) = case.traffic
    assert traffic.channel == "aeron:udp?endpoint=10.64.0.19:24325|term-length=64k"
    assert traffic.receive == "aeron:udp?endpoint=10.64.0.19:24325"
    assert (traffic.port, traffic.term_length, traffic.mtu) == (24325, 65536, 1408)
    assert (traffic.shortest_bytes, traffic.longest_bytes) == (1, 8192)
    assert traffic.reliable
    assert [fault.action for fault in case.faults] == ["drop", "hold"]
    assert case.faults[0].links == ("a->b",)
    assert case.faults[1].links == ("a->b", "b->a")
    assert case.faults[1].hold_ns == 5_000_000
    assert case.faults[0].share == 0.02
    assert case.address("b") == "10.64.0.19"
    assert case.traffic_by_id("one") is traffic


def test_links_are_named_by_the_order_of_their_ends():
    case = resolved(GOOD.replace("between: [a, b]", "between: [b, a]"))
    assert [host.name for host in case.hosts] == ["b", "a"]
    assert case.faults[0].links == ("b->a",)


def test_names_agree_with_the_run_folder():
    assert LINK_NAMES == LINKS
    assert tuple(ACTIONS.values()) == SCENARIO_ACTIONS
    assert {
        "begin": layout.FLAG_BEGIN,
        "end": layout.FLAG_END,
        "eos": layout.FLAG_END_OF_STREAM,
        "revoked": layout.FLAG_REVOKED,
        "group": layout.SETUP_FLAG_GROUP,
        "send-setup": layout.SM_FLAG_SEND_SETUP,
        "receiver-eos": layout.SM_FLAG_END_OF_STREAM,
        "reply": layout.RTTM_FLAG_REPLY,
    } == FLAG_BITS


def test_ordinals_follow_the_stream_ids():
    block = GOOD[GOOD.index("  - id: one") : GOOD.index("faults:")]
    second = block.replace("id: one", "id: two").replace("1001", "-5").replace("24325", "24326")
    case = resolved(GOOD.replace(block, block + second))
    assert [(each.id, each.ordinal) for each in case.traffic] == [("one", 1), ("two", 0)]


def test_is_read_back_as_written(tmp_path):
    case = resolved()
    case.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == case
    assert json.loads((tmp_path / "case.json").read_text())["schema"] == "windtunnel-case/1"


def test_a_damaged_file_is_refused(tmp_path):
    document = json.loads(resolved().to_json())
    document["impairments"] = "bad"
    (tmp_path / "case.json").write_text(json.dumps(document))
    with pytest.raises(
        DocumentError, match=r"case\.json: impairments: input should be a valid array"
    ):
        Case.read(tmp_path / "case.json")


@pytest.mark.parametrize(("key", "found"), [("traffic", True), ("observed", False)])
def test_a_stream_is_either_sent_or_observed(tmp_path, key, found):
    document = json.loads(resolved().to_json())
    (stream,) = document["traffic"]
    document["observed"] = [{**stream, "id": "seen", "observed": True}]
    (tmp_path / "case.json").write_text(json.dumps(document))
    assert [each.id for each in Case.read(tmp_path / "case.json").observed] == ["seen"]
    document[key][0]["observed"] = found
    (tmp_path / "case.json").write_text(json.dumps(document))
    with pytest.raises(DocumentError) as raised:
        Case.read(tmp_path / "case.json")
    text = f"{key}[0].observed: expected {not found}, found {found}".lower()
    assert text in str(raised.value)


def test_seeds_count_from_the_root():
    scenario = parse_scenario(GOOD, "made.yaml")
    assert run_seeds(scenario) == [16, 17]
    assert run_seeds(scenario, root=2**63 - 1, count=2) == [2**63 - 1, 0]


def test_longest_message_is_bounded():
    assert longest_message(65536) == 8192
    assert longest_message(1 << 20) == 1 << 17
    assert longest_message(1 << 27) == 16 << 20
    assert longest_message(1 << 30) == 16 << 20


def test_expected_frames_of_a_single_length():
    fixed = GOOD.replace("from: 1B, to: max", "from: 1376B, to: 1376B")
    (traffic,) = resolved(fixed).traffic
    assert expected_data_frames(traffic) == pytest.approx((1 << 20) / 1376, rel=0.01)


def test_explains_the_case():
    text = explain(resolved())
    assert "traffic   one: a to b, reliable" in text
    assert "0 lose: 2% of DATA on a->b dropped" in text
    assert "1 late: 1% of SM, DATA on a->b, b->a delayed for 5ms" in text
    assert "selected by order of arrival" in text


def test_the_schema_describes_every_field():
    schema = json_schema()
    tables = {**schema["$defs"], "Scenario": schema["else"]}
    described = [
        (name, key, bool({"description", "$ref", "enum", "const"} & set(field)))
        for name, table in tables.items()
        for key, field in table.get("properties", {}).items()
    ]
    assert {"traffic", "faults", "expect"} <= set(schema["else"]["properties"])
    assert set(schema["then"]["properties"]) == set(schema["else"]["properties"])
    assert [each for each in described if not each[2]] == []
    assert tables["Hold"]["properties"]["for"]["pattern"]
    assert tables["Act"]["additionalProperties"] is False


def test_the_case_of_every_scenario_is_read_back_as_written(tmp_path):
    files = sorted(SCENARIOS.rglob("*.yaml"))
    assert len(files) > 50
    for file in files:
        scenario = load_scenario(file)
        joined = scenario.network.joined
        case = resolve(
            scenario,
            seed=scenario.seeds.root,
            fidelity=scenario.fidelity[0],
            addresses={name: f"10.64.{at}.10" for at, name in enumerate(joined)},
            payload=Payload(path="payload.bin", sha256="00", length_bytes=1 << 20),
        )
        case.write(tmp_path / "case.json")
        assert Case.read(tmp_path / "case.json") == case, file


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("traffic", 0, "term_length"), 65_537, "traffic[0].term_length: expected a power of two"),
        (("traffic", 0, "term_length"), 0, "traffic[0].term_length: expected a power of two"),
        (("traffic", 0, "mtu"), 33, "traffic[0].mtu: expected a multiple of 32"),
        (("traffic", 0, "total_bytes"), 1 << 62, "traffic[0].total_bytes: expected 1 to"),
        (("traffic", 0, "longest_bytes"), 1, "traffic[0].total_bytes: expected at most 16777216"),
        (("traffic", 0, "from_host"), "z", "traffic[0]: expected one of a, b, found 'z'"),
        (("traffic", 0, "port"), "24325", "traffic[0].port: input should be a valid integer"),
        (("faults", 0, "links"), ["x->y"], "faults[0].links: expected one of a->b, b->a, found"),
        (("faults", 0, "ordinals"), [9], "faults[0].ordinals: expected 0 to 0, found 9"),
        (("hosts", 0, "address"), "example.org", "hosts[0].address: expected an IPv4 address"),
        (("expect", 0, "arguments"), {"to": None}, "expect[0].arguments: value error, argument"),
        (("seed",), -1, "seed: expected 0 to"),
        (("seed",), 1 << 70, "expected 64-bit integers"),
    ],
)
def test_invalid_values_of_a_case_are_refused(tmp_path, path, value, text):
    document = json.loads(resolved().to_json())
    document["traffic"][0]["total_bytes"] = 1 << 30
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    (tmp_path / "case.json").write_text(json.dumps(document))
    with pytest.raises(DocumentError) as raised:
        Case.read(tmp_path / "case.json")
    assert str(raised.value).startswith(f"case.json: {text}")
