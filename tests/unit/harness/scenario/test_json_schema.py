"""The published JSON Schema accepts and refuses the same documents as the loader's tables."""

import copy
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from tests.unit.harness.scenario.test_scenario_loader import changed, faults_of
from windtunnel.harness.scenario.json_schema import json_schema
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.shorthand import expand

FOLDER = Path(__file__).resolve().parents[4] / "scenarios"
FILES = sorted(FOLDER.rglob("*.yaml"))
DROP = "act: {drop: 2%}"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
RICH = """\
schema: windtunnel/1
name: made/rich
about: As many keys as fit into one scenario.
seeds: {root: 1, count: 2}
fidelity: [netns, sim]
network:
  hosts: [a, b]
  link:
    between: [a, b]
    backend: relay
    impairments:
      a->b: {loss: 1%, delay: {mean: 5ms, jitter: 1ms, distribution: normal}, rate: 9Mbit/s,
             queue: 100, duplicate: 1%, corrupt: 1%, reorder: {share: 1%, gap: 2}}
      b->a: {loss: {good_to_bad: 1%, bad_to_good: 20%, bad_loss: 90%, good_loss: 0%}, delay: 2ms}
archives:
  - {host: b, segment: 256KiB}
traffic:
  - id: one
    stream: 1001
    from: a
    to: [b]
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k"
    channels: {a: "aeron:udp?endpoint=${b}:24325|term-length=64k"}
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 1MiB, message: {from: 1B, to: max}, close_after: 1ms,
              pace: {rate: 9MiB/s, rests: {every: 1KiB, for: 1us}}}
    consume: {rate: 9MiB/s}
    recorded: b
  - id: again
    stream: 1002
    from: b
    to: a
    replays: one
    publication: exclusive
    channel: "aeron:udp?endpoint=${a}:24326"
    receive: "aeron:udp?endpoint=${a}:24326"
  - id: short
    stream: 1003
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24327"
    receive: "aeron:udp?endpoint=${b}:24327"
    content: {messages: 2000, message: 1408B, rate: 900 msg/s}
    consume: {rate: 1000 msg/s}
    starts_with: all
faults:
  - id: first
    where: {link: a->b}
    what: {type: DATA, stream: 1001, session: 1, flags: {set: begin, clear: [end]},
           position: {from: 1KiB, length: 1KiB, every: 64KiB}}
    when: {after: 1ms, for: 1ms, every: 2ms, reached: {stream: 1001, position: 1KiB}}
    attempt: {from: 1, to: 3, every: 2}
    act: {duplicate: {share: 1%, copies: 2, until: {frames: 2}, at_most: 1ms}}
  - id: second
    where: {link: [a->b, b->a], shared: true}
    what: {type: [SM, NAK], position: {ranges: [{from: 1KiB, length: 1B}]}, order: 3}
    act: {inject: {frames: [{type: DATA, place: {advance: -64B, shift: 1B, term: 1}, flags: eos,
          payload: 64B, holds: frames, length: 96B, version: 1, session: other}]}}
  - {id: burst, where: {link: b->a}, what: {type: DATA}, act: {drop: {burst: 50, every: 5000}}}
  - {id: third, where: {link: both}, what: {type: ANY}, act: {hold: {share: always, for: 1ms}}}
events:
  - {id: freeze, whom: {host: b, process: driver}, when: {after: 1ms}, act: {pause: 1ms}}
timeouts: {image_liveness: 2s}
expect:
  - delivered_once
  - naks_paced: {traffic: [one], to: b, applies: [ours, "aeron-c>=1.50,<1.60"]}
budget: {wall: 20s, failures: 5%}
"""


EXPLAINED = {
    # Empty tables that `validation` refuses, although the table by itself is valid.
    (("traffic", 0, "consume"), True),
    (("traffic", 0, "consume", "rate"), True),
    (("traffic", 0, "content", "pace"), True),
    (("traffic", 2, "consume"), True),
    (("traffic", 2, "consume", "rate"), True),
    (("network", "link", "impairments", "a->b"), True),
    (("network", "link", "impairments", "b->a"), True),
    (("network", "link", "impairments", "b->a", "loss"), True),
    # Required by `validation`, because a scenario with applications needs no traffic.
    (("traffic",), True),
    (("expect",), True),
    # Comparisons of two numbers, which JSON Schema cannot express: `from: 7` with `to: 3`, and
    # `burst: 50` with `every: 7`.
    (("faults", 0, "attempt", "from"), False),
    (("faults", 2, "act", "drop", "every"), False),
}


def accepts(document: Any) -> bool:
    return bool(VALIDATOR.is_valid(document))


def test_it_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_it_accepts_each_included_scenario(file: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("link: a->b", "link: [a->b]"),
        ("type: DATA}", "type: DATA, stream: 1001}"),
        ("type: DATA}", "type: DATA, stream: [1001]}"),
        ("type: DATA}", "type: DATA, flags: {set: begin}}"),
        ("type: DATA}", "type: DATA, position: {at: term-end}}"),
        ("type: DATA}", "type: DATA, position: {from: 1KiB, length: 1B}}"),
        ("type: DATA}", "type: DATA, position: {every: 1KiB}}"),
        (DROP, f"attempt: 2, {DROP}"),
        (DROP, f"attempt: {{from: 2}}, {DROP}"),
        (DROP, "act: {duplicate: 1%}"),
        (DROP, f"when: {{every: 0s}}, {DROP}"),
        (DROP, f"when: {{every: 1s, for: 1ms}}, {DROP}"),
        (DROP, "act: {drop: {good_to_bad: 1%, bad_to_good: 20%, good_loss: 0%}}"),
        (DROP, "act: {duplicate: {good_to_bad: 1%, bad_to_good: 20%}}"),
        (DROP, "act: {duplicate: {share: 1%, for: 1ms}}"),
        (DROP, "act: {drop: {p13: 1%, p31: 20%}}"),
        (DROP, "act: {hold: {share: 1%, until: {consumed: true}, at_most: 1s}}"),
        (DROP, 'act: {drop: " 2 % "}'),
        (DROP, "act: {inject: {frames: [{type: SM, place: {advance: -1MiB}}]}}"),
        ("{bytes: 1MiB", '{bytes: "1048576 B"'),
        ("expect:\n", "expect:\n  - naks_paced: {applies: [ours]}\n"),
    ],
)
def test_schema_and_loader_accept_valid_scenarios(old: str, new: str) -> None:
    text = changed(old, new)
    assert parse_scenario(text, "made.yaml")
    VALIDATOR.validate(yaml.safe_load(text))


EXTENDING = """\
name: mine
extends: loss/reliable-2pct
sweep: {loss: [1%, 5%], traffic.small.content.bytes: [1MiB]}
network: {link: {impairments: {both: {delay: 5ms}}}}
"""


def test_a_file_that_extends_another_one_may_lack_keys() -> None:
    document = yaml.safe_load(EXTENDING)
    VALIDATOR.validate(document)
    for key, wrong in (
        ("name", None),
        ("name", "A B"),
        ("extends", 3),
        ("sweep", {}),
        ("sweep", {"loss": "5%"}),
        ("other", 1),
    ):
        changed = {**document, key: wrong}
        assert not accepts({name: each for name, each in changed.items() if each is not None})
    without = {key: each for key, each in document.items() if key != "extends"}
    assert not accepts(without)


def test_variables_and_settings_may_be_numbers() -> None:
    text = changed("budget:", "applications: [{id: x, on: a, command: [x], env: {A: 1, B: 0.5, "
                   "C: true}}]\nbudget:")  # fmt: skip
    (application,) = parse_scenario(text, "made.yaml").applications
    assert application.env == {"A": "1", "B": "0.5", "C": "true"}
    VALIDATOR.validate(yaml.safe_load(text.replace(" on: a", " 'on': a")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("link: a->b", "link: []"),
        ("link: a->b", "link: a-b"),
        ("link: a->b", "link:"),
        ("type: DATA", "type: DTA"),
        ("type: DATA}", "type: DATA, stream: []}"),
        ("type: DATA}", "type: DATA, position: {from: 1KiB}}"),
        ("type: DATA}", "type: DATA, position: {from: 1KiB, length: 1B, at: term-end}}"),
        ("type: DATA}", "type: DATA, position: {}}"),
        (DROP, f"attempt: 0, {DROP}"),
        (DROP, f"attempt:, {DROP}"),
        (DROP, "act: {}"),
        (DROP, "act: {drop: 1%, swap: 1%}"),
        (DROP, "act: {drop: }"),
        (DROP, "act: {drop: 2}"),
        (DROP, "act: {drop: 2ms}"),
        (DROP, "act: {drop: 0.0%}"),
        (DROP, f"when: {{every: 1s}}, {DROP}"),
        (DROP, "act: {drop: {good_to_bad: 1%}}"),
        (DROP, "act: {duplicate: {copies: 2}}"),
        (DROP, "act: {duplicate: {share: 1%, for: 1ms, until: {frames: 1}, at_most: 1s}}"),
        (DROP, "act: {hold: {share: 1%, until: {consumed: true}}}"),
        (DROP, "act: {hold: {share: 1%, until: {consumed: }, at_most: 1s}}"),
        (DROP, "act: {hold: {share: 1%, for: 1ms, at_most: 1s}}"),
        (DROP, "act: {inject: {frames: [{type: DATA, holds: frames}]}}"),
        (DROP, "act: {inject: {frames: [{type: SM, place: {advance: 0B, term_end: 0B}}]}}"),
        ("backend: relay}", "backend: relay}\n  links: [{between: [a, b]}]"),
        ("  link: {between: [a, b], backend: relay}\n", ""),
        ("    content: {bytes: 1MiB, message: {from: 1B, to: max}}\n", ""),
        ("bytes: 1MiB", "bytes: 1"),
        ("to: b\n", "to: []\n"),
        ("expect:\n", "expect:\n  - {}\n"),
        ("expect:\n", "expect:\n  - naks_paced: 1\n"),
        ("expect:\n", "expect:\n  - naks_paced: {applies: ours}\n"),
        ("expect:\n", "expect:\n  - naks_paced: {applies: ['ours,']}\n"),
        ("budget: {wall: 20s}", "budget: {wall: 20s}\nother: 1"),
        ("budget: {wall: 20s}", "budget:"),
        ("    content", "    consume: {}\n    content"),
        ("backend: relay}", "backend: relay, impairments: {a->b: {}}}"),
    ],
)
def test_schema_and_loader_reject_invalid_scenarios(old: str, new: str) -> None:
    text = changed(old, new)
    assert faults_of(text)
    assert not accepts(yaml.safe_load(text))


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def altered(document: Any, path: tuple[Any, ...]) -> Iterator[Any]:
    """Yield documents in which one value is removed, replaced, or has an unknown key."""
    for change in ("remove", "x", 7, True, [], {}, ["x"], "unknown"):
        found = copy.deepcopy(document)
        parent = found
        for key in path[:-1]:
            parent = parent[key]
        if change == "remove":
            del parent[path[-1]]
        elif change == "unknown" and isinstance(parent[path[-1]], dict):
            parent[path[-1]]["unknown"] = 1
        else:
            parent[path[-1]] = [parent[path[-1]]] if change == "unknown" else change
        yield found


def loads(document: Any) -> bool:
    """Return whether the loader's steps before `validation` accept a document."""
    full = copy.deepcopy(document)
    short = expand(full)
    try:
        Scenario.model_validate(full)
    except ValidationError:
        return False
    return not short


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.full)])
def test_schema_and_loader_agree_about_each_change_of_a_value(every: int) -> None:
    document = yaml.safe_load(RICH)
    VALIDATOR.validate(document)
    assert loads(document)
    differences = []
    for path in itertools.islice(paths(document), 0, None, every):
        for other in altered(document, path):
            is_valid = loads(other)
            if accepts(other) != is_valid:
                differences.append((path, is_valid))
    assert {each for each in differences if each not in EXPLAINED} == set()
