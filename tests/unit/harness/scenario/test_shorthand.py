"""Short forms resolve to the same case as the full forms, and errors name the place in the file."""

import json
from pathlib import Path

import pytest

from tests.unit.harness.scenario.explain.test_explain_arithmetic import case_of, line_of
from tests.unit.harness.scenario.test_json_schema import accepts
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.replay.document import read_document
from windtunnel.harness.scenario.yaml_document import ScenarioError, YamlDocument

CONTENT = "{bytes: 1MiB, message: {from: 1B, to: max}}"
DROP = "drop: 2%"
LINK = "backend: relay}"


def written(content=CONTENT, consume="", drop=DROP, impairments=""):
    text = GOOD.replace(CONTENT, content + consume).replace(DROP, drop)
    return text.replace(LINK, f"backend: relay{impairments}}}")


def as_json(text):
    return json.loads(case_of(text).to_json())


@pytest.mark.parametrize(
    ("short", "full"),
    [
        (
            {"content": "{bytes: 1MiB, message: 1000B}"},
            {"content": "{bytes: 1MiB, message: {from: 1000B, to: 1000B}}"},
        ),
        (
            {"content": "{messages: 20000, message: 1408B}"},
            {"content": "{bytes: 28160000B, message: {from: 1408B, to: 1408B}}"},
        ),
        (
            {"content": "{messages: 3, message: {from: 1024B, to: 1KiB}}"},
            {"content": "{bytes: 3KiB, message: {from: 1KiB, to: 1KiB}}"},
        ),
        (
            {"content": "{bytes: 1MiB, message: 1408B, rate: 2000 msg/s}"},
            {"content": "{bytes: 1MiB, message: 1408B, pace: {rate: 2816000B/s}}"},
        ),
        (
            {"content": "{bytes: 1MiB, rate: 1MiB/s}"},
            {"content": "{bytes: 1MiB, pace: {rate: 1MiB/s}}"},
        ),
        (
            {"content": "{bytes: 1MiB, message: 1KiB, pace: {rate: 100msg/s}}"},
            {"content": "{bytes: 1MiB, message: 1KiB, pace: {rate: 100KiB/s}}"},
        ),
        (
            {
                "content": "{bytes: 1MiB, message: 1KiB}",
                "consume": "\n    consume: {rate: 300 msg/s}",
            },
            {
                "content": "{bytes: 1MiB, message: 1KiB}",
                "consume": "\n    consume: {rate: 300KiB/s}",
            },
        ),
        (
            {"impairments": ", impairments: {both: {delay: 20ms}}"},
            {"impairments": ", impairments: {both: {delay: {mean: 20ms}}}"},
        ),
        (
            {"impairments": ", impairments: {both: {loss: {burst: 50, every: 5000}}}"},
            {
                "impairments": ", impairments: "
                "{both: {loss: {good_to_bad: 0.020202%, bad_to_good: 2%}}}",
            },
        ),
        (
            {"drop": "drop: {burst: 4, every: 104}"},
            {"drop": "drop: {good_to_bad: 1%, bad_to_good: 25%}"},
        ),
        (
            {"drop": "duplicate: {burst: 4, every: 104}"},
            {"drop": "duplicate: {good_to_bad: 1%, bad_to_good: 25%}"},
        ),
    ],
)
def test_a_short_form_resolves_to_the_same_case_as_the_full_form(short, full):
    assert as_json(written(**short)) == as_json(written(**full))
    assert accepts(YamlDocument(written(**short), "made.yaml").value)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"content": "{messages: 20000}"},
            "17:15: traffic[0].content.messages: expected one message length, such as",
        ),
        (
            {"content": "{messages: 20, message: {from: 1B, to: 9B}}"},
            "17:15: traffic[0].content.messages: expected one message length, such as",
        ),
        (
            {"content": "{messages: 20000, bytes: 1MiB, message: 1KiB}"},
            "17:15: traffic[0].content.messages: expected `bytes` or `messages`, found both",
        ),
        (
            {"content": "{messages: 20KiB, message: 1KiB}"},
            "17:15: traffic[0].content.messages: expected a number of messages from 1 to",
        ),
        (
            {"content": "{messages: 0, message: 1KiB}"},
            "17:15: traffic[0].content.messages: expected a number of messages from 1 to",
        ),
        (
            {"content": "{messages: true, message: 1KiB}"},
            "17:15: traffic[0].content.messages: expected a number of messages from 1 to",
        ),
        (
            {"content": "{bytes: 1MiB, rate: 20 msg/s}"},
            "17:28: traffic[0].content.rate: a rate in messages needs one message length",
        ),
        (
            {"content": "{bytes: 1MiB, pace: {rate: 20 msg/s}}"},
            "17:35: traffic[0].content.pace.rate: a rate in messages needs one message length",
        ),
        (
            {"content": "{bytes: 1MiB, message: 1KiB, rate: 0.5 msg/s}"},
            "17:43: traffic[0].content.rate: expected a whole number of the smallest unit",
        ),
        (
            {"content": "{bytes: 1MiB, rate: 1MiB/s, pace: {rate: 1MiB/s}}"},
            "17:28: traffic[0].content.rate: expected `rate` or `pace`, found both",
        ),
        ({"content": "{bytes: 1MiB, message: 0B}"}, "17:28: traffic[0].content.message"),
        ({"content": "{bytes: 1MiB, message: 1408}"}, "17:28: traffic[0].content.message"),
        ({"consume": "\n    consume: {rate: 3 msg/s}"}, "18:15: traffic[0].consume.rate: a rate"),
        (
            {"impairments": ", impairments: {both: {delay: 20}}"},
            "8:64: network.link.impairments.both.delay: ",
        ),
        (
            {"impairments": ", impairments: {both: {delay: 20sec}}"},
            "8:64: network.link.impairments.both.delay: expected a duration with a unit",
        ),
        (
            {"drop": "drop: {burst: 50, every: 50}"},
            "19:63: faults[0].act.drop: expected `burst` below `every`, the mean number of",
        ),
        (
            {"drop": "drop: {burst: 50}"},
            "19:63: faults[0].act.drop: every: expected a number of packets from 1 to",
        ),
        (
            {"drop": "drop: {burst: 50ms, every: 1s}"},
            "19:63: faults[0].act.drop: burst: expected a number of packets from 1 to",
        ),
        (
            {"drop": "drop: {burst: 50, every: 100, share: 1%}"},
            "19:63: faults[0].act.drop: expected only burst and every, found 'share'",
        ),
    ],
)
def test_an_error_names_the_place_in_the_file(changes, fault):
    (found,) = faults_of(written(**changes))
    assert found.startswith(f"made.yaml:{fault}")


def test_a_replays_subscriber_has_the_rate_of_the_recordings_messages():
    replay = """
  - id: two
    stream: 1002
    from: b
    to: a
    replays: one
    publication: exclusive
    channel: "aeron:udp?endpoint=${a}:24326"
    receive: "aeron:udp?endpoint=${a}:24326"
    consume: {rate: 1000 msg/s}
archives:
  - {host: b, segment: 64KiB}
"""
    text = written("{messages: 100, message: 1KiB}", "\n    recorded: b" + replay.rstrip())
    assert case_of(text).traffic[1].consume.bytes_per_s == 1_024_000


def test_explain_counts_messages_of_one_length():
    text = written("{messages: 20000, message: 1408B, rate: 2000 msg/s}")
    assert (
        "content 27500KiB in 20,000 messages of 1408 bytes, 40,000 DATA frames, about"
        in line_of(text, "^content")
    )
    assert line_of(text, "^publishes") == "publishes at most 2750KiB/s (2,000 messages/s)"
    bursts = written(drop="drop: {burst: 50, every: 5000}")
    assert line_of(bursts, "bursts of 50") == "in bursts of 50.0 on average (two states)"
    assert line_of(bursts, "^0 lose").startswith("0 lose: 0.999999% of DATA")


def test_a_document_that_is_shrunk_has_full_forms(tmp_path: Path):
    file = tmp_path / "made.yaml"
    file.write_text(written("{messages: 3, message: 1KiB, rate: 1 msg/s}"))
    content = read_document(file)["traffic"][0]["content"]
    lengths = {"from": "1KiB", "to": "1KiB"}
    assert content == {"bytes": "3KiB", "message": lengths, "pace": {"rate": "1KiB/s"}}
    file.write_text(written("{messages: 3}"))
    with pytest.raises(ScenarioError, match=r"made.yaml:17:15: .*expected one message length"):
        read_document(file)
