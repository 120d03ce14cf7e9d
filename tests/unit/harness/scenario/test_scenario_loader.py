"""Errors in a scenario file, each with the place that its message names."""

import pytest

from windtunnel.harness.scenario.loader import ScenarioError, load_scenario, parse_scenario

GOOD = """\
schema: windtunnel/1
name: loss/made
about: Made up.
seeds: {root: 0x10, count: 2}
fidelity: [netns]
network:
  hosts: [a, b]
  link: {between: [a, b], backend: relay}
traffic:
  - id: one
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 1MiB, message: {from: 1B, to: max}}
faults:
  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}
  - {id: late, where: {link: both}, what: {type: [SM, DATA]}, act: {hold: {share: 1%, for: 5ms}}}
expect:
  - delivered_once
  - rcv_pos_reaches_end: {within: 5ms}
budget: {wall: 20s}
"""


def faults_of(text):
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(text, "made.yaml")
    return raised.value.errors


def changed(old, new):
    assert GOOD.count(old) >= 1
    return GOOD.replace(old, new, 1)


def test_reads_a_valid_scenario():
    scenario = parse_scenario(GOOD, "made.yaml")
    assert scenario.seeds.root == 16
    assert scenario.traffic[0].content.total_bytes == 1 << 20
    assert scenario.faults[0].act.drop == 20_000_000
    assert scenario.faults[1].act.hold.delay_ns == 5_000_000
    assert scenario.faults[1].what.types == ("SM", "DATA")
    assert scenario.expect[1].name == "rcv_pos_reaches_end"
    assert scenario.expect[1].arguments == {"within": "5ms"}
    assert scenario.budget.wall_ns == 20 * 10**9


def test_has_defaults():
    short = changed("budget: {wall: 20s}\n", "").replace(", message: {from: 1B, to: max}", "")
    short = short.replace(", count: 2", "").replace(", backend: relay", "")
    scenario = parse_scenario(short.replace("fidelity: [netns]\n", ""), "made.yaml")
    assert scenario.budget.wall_ns == 120 * 10**9
    assert scenario.seeds.count == 1
    assert scenario.fidelity == ("netns", "compose")
    assert scenario.traffic[0].content.message.longest_bytes == "max"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("drop: 2%", "drop: 2", "19:63: faults[0].act.drop: expected a share with a unit"),
        ("drop: 2%", "drop: 101%", "19:63: faults[0].act.drop: expected a share above 0%"),
        ("drop: 2%", "drop: 0%", "19:63: faults[0].act.drop: expected a share above 0%"),
        ("drop: 2%", "lose: 2%", "19:63: faults[0].act.lose: unknown key"),
        ("drop: 2%", "dorp: 2%", "19:63: faults[0].act.dorp: unknown key: did you mean drop?"),
        ("\nexpect:", "\nexpects:", "21:1: expects: unknown key: did you mean expect"),
        (
            "stream: 1001",
            "steam: 1001",
            "11:5: traffic[0].steam: unknown key: did you mean stream",
        ),
        ("drop: 2%", "drop: 2%, swap: 1%", "19:57: faults[0].act: expected exactly one of"),
        ("{drop: 2%}", "{}", "19:57: faults[0].act: expected exactly one of"),
        ("for: 5ms", "for: 5", "20:87: faults[1].act.hold.for: expected a duration with a unit"),
        ("for: 5ms", "for: 11s", "20:87: faults[1].act.hold.for: expected at most"),
        (", for: 5ms", "", "20:69: faults[1].act.hold: expected exactly one of `for`"),
        (
            "link: a->b",
            "link: a->c",
            "19:24: faults[0].where.link: expected a->b, b->a or both, found 'a->c'",
        ),
        (
            "link: a->b",
            "link: a->a",
            "19:24: faults[0].where.link: expected a->b, b->a or both, found 'a->a'",
        ),
        ("link: a->b", "path: a->b", "19:24: faults[0].where.path: unknown key"),
        ("type: DATA", "type: DTA", "19:44: faults[0].what.type: expected 'DATA'"),
        (
            "type: DATA",
            "type: SM",
            "19:44: faults[0].what.type: expected a frame type that is sent over",
        ),
        ("[SM, DATA]", "[SM, SM]", "20:44: faults[1].what.type: expected distinct frame types"),
        ("hold: {share: 1%, for: 5ms}", "swap: 1%", "20:69: faults[1].act.swap: SM has no pos"),
        ("id: late", "id: lose", "20:6: faults[1].id: 'lose' occurs twice"),
        (
            "drop: 2%}}",
            "drop: 100%}}\n  - {id: x, where: {link: a->b}, what: {type: DATA}, act: {drop: 1%}}",
            "20:5: faults[1]: can never apply",
        ),
        ("stream: 1001", "stream: x", "11:5: traffic[0].stream: expected an integer"),
        (
            "stream: 1001",
            "stream: 2147483648",
            "11:5: traffic[0].stream: expected less than 2147483648",
        ),
        ("from: a", "from: z", "12:5: traffic[0].from: expected one of the hosts a, b, found 'z'"),
        ("to: b", "to: a", "13:5: traffic[0].to: expected publisher and subscriber on diff"),
        (
            "${b}:24325|",
            "${c}:24325|",
            "15:5: traffic[0].channel: expected one of the hosts a, b, found 'c'",
        ),
        ("${b}:24325|", "${a}:24325|", "15:5: traffic[0].channel: expected endpoint=${b}:PORT"),
        ("${b}:24325|", "1.2.3.4:24325|", "15:5: traffic[0].channel: expected endpoint=${b}"),
        ("term-length=64k", "term-length=65k", "15:5: traffic[0].channel: term-length 66560"),
        (':24325"\n    content', ':24326"\n    content', "16:5: traffic[0].receive: expected"),
        ("bytes: 1MiB", "bytes: 0B", "17:15: traffic[0].content.bytes: expected at least 1B"),
        ("bytes: 1MiB", "bytes: 1", "17:15: traffic[0].content.bytes: expected a size with"),
        ("to: max", "to: 9KiB", "17:48: traffic[0].content.message.to: expected at most 8192B"),
        ("from: 1B", "from: 0B", "17:38: traffic[0].content.message.from: expected 1B to 8192B"),
        ("hosts: [a, b]", "hosts: [a, a]", "7:3: network.hosts: expected distinct hosts"),
        ("hosts: [a, b]", "hosts: [a]", "7:3: network.hosts: expected at least 2 items"),
        (
            "between: [a, b]",
            "between: [a, c]",
            "8:23: network.link.between[1]: expected one of the hosts",
        ),
        (
            "between: [a, b]",
            "between: [a, a]",
            "8:10: network.link.between: expected two different hosts",
        ),
        ("backend: relay", "backend: netem", "8:27: network.link.backend: expected `impairments`"),
        ("schema: windtunnel/1", "schema: windtunnel/2", "1:1: schema: expected '"),
        ("budget:", "gates:", "24:1: gates: unknown key"),
        ("root: 0x10", "root: -1", "4:9: seeds.root: expected at least 0"),
        ("root: 0x10", "root: 1.5", "4:9: seeds.root: expected an integer"),
        ("{within: 5ms}", "5ms", "23:5: expect[1]: expected a table"),
        ("  - delivered_once\n", "  - [delivered_once]\n", "22:5: expect[0]: expected a check's"),
        ("  - delivered_once\n", "  - rcv_pos_reaches_end\n", "23:5: expect[1]: 'rcv_pos_reac"),
        ("  - id: one", "  - id: One", "10:5: traffic[0].id: expected lower-case letters"),
        ("about: Made up.", "about: ''", "3:1: about: expected at least 1 characters"),
        ("wall: 20s", "wall: 20", "24:10: budget.wall: expected a duration with a unit"),
    ],
)
def test_names_the_place_of_an_error(old, new, fault):
    faults = faults_of(changed(old, new))
    assert [each for each in faults if each.startswith(f"made.yaml:{fault}")], faults


def test_names_all_errors_in_the_order_of_the_file():
    faults = faults_of(changed("drop: 2%", "drop: 2").replace("wall: 20s", "wall: 20"))
    assert [each.split(":")[1] for each in faults] == ["19", "24"]


def test_a_missing_key_is_named_where_its_table_begins():
    assert faults_of(changed("    stream: 1001\n", "")) == (
        "made.yaml:10:5: traffic[0].stream: this key is missing",
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [1", "made.yaml:2:1: did not find expected ',' or ']'"),
        (
            "about: losses: 2 %",
            "made.yaml:1:14: mapping values are not allowed in this context: quote a text that "
            "contains ': '",
        ),
        ("a: 1\na: 2", "made.yaml:2:1: key 'a' occurs twice"),
        ("1: 2", "made.yaml:1:1: expected a string as a key"),
        ("a: \x00", "made.yaml:1:4: invalid YAML"),
        ("a: !!python/object:os.system {}", "made.yaml:1:4: tag '"),
        ("", "made.yaml:1:1: schema: this key is missing"),
        ("- 1", "made.yaml:1:1: expected a table"),
    ],
)
def test_refuses_a_file_that_is_not_a_scenario(text, fault):
    assert any(each.startswith(fault) for each in faults_of(text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ScenarioError, match=r"gone\.yaml: cannot be read"):
        load_scenario(tmp_path / "gone.yaml")


def test_the_name_is_the_path_below_scenarios(tmp_path):
    folder = tmp_path / "scenarios" / "loss"
    folder.mkdir(parents=True)
    file = folder / "made.yaml"
    file.write_text(GOOD)
    assert load_scenario(file).name == "loss/made"
    moved = file.rename(folder / "other.yaml")
    with pytest.raises(ScenarioError, match=r"other\.yaml:2:1: name: expected 'loss/other'"):
        load_scenario(moved)


def test_elsewhere_any_name_is_accepted(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    assert load_scenario(file).name == "loss/made"


UNKNOWN = "expected a channel parameter, found 'term-lenght': did you mean term-length"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("term-length=64k", "term-lenght=64k", "15:5: traffic[0].channel"),
        (':24325"\n    content', ':24325|term-lenght=1m"\n    content', "16:5: traffic[0].receive"),
        (
            "    content",
            '    channels: {a: "aeron:udp?endpoint=${b}:24325|term-lenght=1m"}\n    content',
            "17:16: traffic[0].channels.a",
        ),
        (
            "    content",
            '    receives: {b: "aeron:udp?endpoint=${b}:24325|term-lenght=1m"}\n    content',
            "17:16: traffic[0].receives.b",
        ),
        (
            "    content",
            '    sources: ["aeron:udp?endpoint=${b}:24325|term-lenght=1m"]\n    content',
            "17:15: traffic[0].sources[0]",
        ),
        (
            "    content",
            '    destinations: "aeron:udp?endpoint=${b}:24325|term-lenght=1m"\n    content',
            "17:5: traffic[0].destinations",
        ),
        (
            "    content",
            '    merges: {after: 1KiB, live: "aeron:udp?endpoint=${b}:24326|term-lenght=1m"}\n'
            "    content",
            "17:27: traffic[0].merges.live",
        ),
    ],
)
def test_refuses_an_unknown_parameter_in_each_channel(old, new, place):
    faults = faults_of(changed(old, new))
    assert [each for each in faults if each.startswith(f"made.yaml:{place}") and UNKNOWN in each], (
        faults
    )
