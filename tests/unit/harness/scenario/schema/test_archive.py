"""Archives of a scenario: valid and invalid files, the resolved case, and its explanation."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario
from windtunnel.harness.scenario.resolved.case import Case, Payload
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.scenario.schema.archive import (
    REPLICATION_PORTS,
    SEGMENT_DEFAULT,
    ArchiveCase,
)
from windtunnel.harness.scenario.schema.merge import MergeCase

CONTENT = "    content: {bytes: 1MiB, message: {from: 1B, to: max}}\n"
EVENTS = "events:\n  - {id: it, whom: {host: b, process: %s}, when: {after: 1s}, act: {%s}}\n"
KILL = "kill: {restart_after: 10s}"


def text_of(archives="[{host: b}]", recorded="b", receive="", more="", expect="delivered_once"):
    text = GOOD.replace(CONTENT, f"{CONTENT}    recorded: {recorded}\n" if recorded else CONTENT)
    text = text.replace("traffic:\n", f"archives: {archives}\ntraffic:\n", 1)
    text = text.replace('${b}:24325"', f'${{b}}:24325{receive}"', 1 if "term" in receive else -1)
    return text.replace("expect:\n  - delivered_once", f"{more}expect:\n  - {expect}")


def case_of(**options):
    return resolve(
        parse_scenario(text_of(**options), "made.yaml"),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )


def faults_of(**options):
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(text_of(**options), "made.yaml")
    return "\n".join(str(each) for each in raised.value.errors)


def test_an_archive_and_its_stream_are_in_the_case():
    case = case_of(archives="[{host: b, segment: 256KiB}]")
    assert case.archives == (ArchiveCase(host="b", segment_bytes=256 << 10),)
    assert case.traffic[0].recorded == "b"
    assert case.traffic[0].ends("recorder") == ("b",)
    assert case.traffic[0].at("b").to_host == "b"
    assert Case.model_validate_json(case.to_json()) == case
    assert "archive   on b, in files of 256KiB" in explain(case)
    assert "recorded by the archive on b, a subscriber's host" in explain(case)


def test_a_publishers_archive_records_the_sent_stream():
    case = case_of(archives="[{host: a}]", recorded="a")
    assert case.archives[0].segment_bytes == SEGMENT_DEFAULT
    assert "recorded by the archive on a, a publisher's host" in explain(case)


@pytest.mark.parametrize(
    ("control", "host", "is_refused"),
    [("", "a", True), ("|control=${a}:24324", "a", False), ("", "b", False)],
)
def test_a_publishers_archive_needs_the_control_address_of_a_manual_channel(
    control, host, is_refused
):
    text = text_of(archives=f"[{{host: {host}}}]", recorded=host)
    channel = f'"aeron:udp?control-mode=manual{control}|fc=min,g:/1|'
    text = text.replace('channel: "aeron:udp?endpoint=${b}:24325|', f"channel: {channel}", 1)
    destinations = '    destinations: ["aeron:udp?endpoint=${b}:24325"]\n    receive:'
    text = text.replace("    receive:", destinations, 1)
    if not is_refused:
        assert parse_scenario(text, "made.yaml")
        return
    with pytest.raises(ScenarioError, match=r"does not find .* add control=HOST:PORT to it"):
        parse_scenario(text, "made.yaml")


def test_nothing_is_recorded_by_default():
    case = case_of(archives="[]", recorded="")
    assert case.archives == ()
    assert case.traffic[0].ends("recorder") == ()
    assert "archive" not in explain(case)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"archives": "[]"}, "host 'b' has no archive"),
        ({"recorded": ""}, "no traffic has `recorded: b`"),
        ({"archives": "[{host: c}]", "recorded": "c"}, "found 'c'"),
        ({"archives": "[{host: b}, {host: b}]"}, "host b has two archives"),
        ({"archives": "[{host: b, segment: 96KiB}]"}, "expected a power of two, found 98304B"),
        ({"archives": "[{host: b, segment: 32KiB}]"}, "at least 65536"),
        ({"archives": "[{host: b, segment: 2GiB}]"}, "at most 1073741824"),
        ({"receive": "|reliable=false"}, "expected a reliable stream"),
        (
            {"recorded": "", "archives": "[]", "expect": "recording_equals_published"},
            "needs traffic with `recorded`",
        ),
        ({"more": EVENTS % ("driver", KILL)}, "archive would lose its driver"),
        ({"more": EVENTS % ("archive", "kill: {restart_after: 9999ms}")}, "expected at least 10s"),
    ],
)
def test_an_invalid_recording_is_refused(options, message):
    assert message in faults_of(**options)


@pytest.mark.parametrize(
    ("host", "step", "restart_after", "is_refused"),
    [
        ("b", "-5s", "14999ms", True),
        ("b", "-5s", "15s", False),
        ("b", "5s", "10s", False),
        ("a", "-5s", "10s", False),
    ],
)
def test_an_archive_whose_clock_steps_back_is_restarted_later(
    host, step, restart_after, is_refused
):
    step_clock = "  - {id: ntp, whom: {host: %s}, when: {after: 2s}, act: {step_clock: %s}}\n"
    kill = EVENTS % ("archive", f"kill: {{restart_after: {restart_after}}}")
    text = text_of(more=kill + step_clock % (host, step))
    text = text.replace("fidelity: [netns]", "fidelity: [sim]")
    if not is_refused:
        assert parse_scenario(text, "made.yaml")
        return
    with pytest.raises(ScenarioError, match=r"at least 15s: .*, since the clock steps back by 5s"):
        parse_scenario(text, "made.yaml")


def test_segment_files_must_hold_a_term():
    text = text_of(archives="[{host: b, segment: 64KiB}]").replace(
        "term-length=64k", "term-length=1m"
    )
    with pytest.raises(
        ScenarioError,
        match="expected segments of at least the term length, 1048576B, on host b, found 65536B",
    ):
        parse_scenario(text, "made.yaml")


def test_a_stream_that_may_be_cut_is_not_recorded():
    text = text_of().replace("    recorded: b\n", "    recorded: b\n    rejoins: true\n")
    with pytest.raises(ScenarioError, match="cannot be combined with `rejoins`"):
        parse_scenario(text, "made.yaml")


def test_only_an_end_of_the_stream_may_record_it():
    text = text_of(archives="[{host: c}]", recorded="c")
    text = text.replace("hosts: [a, b]", "hosts: [a, b, c]").replace(
        "link: {between: [a, b], backend: relay}",
        "links: [{between: [a, b]}, {between: [a, c]}]",
    )
    with pytest.raises(ScenarioError, match="expected one of the stream's hosts a, b, found c"):
        parse_scenario(text, "made.yaml")


def test_an_archive_may_be_killed_where_no_stream_rejoins():
    event = case_of(more=EVENTS % ("archive", KILL)).events[0]
    assert event.roles == ("archive",)


REPLAY = """\
  - id: again
    stream: 2001
    replays: one
    from: b
    to: a
    publication: exclusive
    channel: "aeron:udp?endpoint=${a}:24326"
    receive: "aeron:udp?endpoint=${a}:24326|nak-delay=10us"
"""


def replayed(old="", new="", **options):
    text = text_of(archives="[{host: b, segment: 256KiB}]", **options)
    paced = "message: {from: 1B, to: max}, pace: {rate: 1MiB/s}, close_after: 1s}"
    text = text.replace("message: {from: 1B, to: max}}", paced)
    assert old in REPLAY
    return text.replace("faults:\n", f"{REPLAY.replace(old, new)}faults:\n", 1)


def test_a_replay_has_the_recorded_stream():
    case = resolve(
        parse_scenario(replayed(), "made.yaml"),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )
    one, again = case.traffic
    assert (again.replays, again.plan_id, one.plan_id) == ("one", "one", "one")
    assert (again.total_bytes, again.term_length, again.mtu) == (1 << 20, 65536, one.mtu)
    assert again.longest_bytes == one.longest_bytes == 8192
    assert (again.pace.is_unlimited, again.close_after_ns) == (True, 0)
    assert not one.pace.is_unlimited
    assert (one.ends("publisher"), one.ends("replayer")) == (("a",), ())
    assert (again.ends("publisher"), again.ends("replayer")) == ((), ("b",))
    assert "the archive on b replays its recording of one" in explain(case)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "replays: one",
            "replays: other",
            "expected one of the recorded streams one, found 'other'",
        ),
        (
            "replays: one",
            "replays: again",
            "expected one of the recorded streams one, found 'again'",
        ),
        ("publication: exclusive", "publication: concurrent", "like every replay"),
        ("to: a", "to: a\n    rejoins: true", "remove this key: a replay does not"),
        ("to: a", "to: a\n    content: {bytes: 2MiB}", "a replay has the content of one"),
        (
            '24326"',
            '24326|term-length=64k"',
            "remove term-length: a replay has the recording's values",
        ),
        ('24326"', '24326|mtu=1408|session-id=7"', "remove mtu, session-id"),
    ],
)
def test_an_invalid_replay_is_refused(old, new, message):
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(replayed(old, new), "made.yaml")
    assert message in "\n".join(str(each) for each in raised.value.errors)


def test_a_replay_is_sent_by_the_host_of_the_recording():
    text = replayed("from: b", "from: a").replace("${a}:24326", "${b}:24326")
    with pytest.raises(ScenarioError, match="expected host b, where one is recorded"):
        parse_scenario(text.replace("from: a\n    to: a", "from: a\n    to: b"), "made.yaml")


def test_an_archive_that_replays_is_not_killed():
    with pytest.raises(ScenarioError, match="a replay ends with its archive"):
        parse_scenario(replayed(more=EVENTS % ("archive", KILL)), "made.yaml")


def test_published_bytes_of_an_event_are_those_of_publishers():
    event = "events:\n  - {id: it, whom: {host: b}, when: {published: 1MiB}, act: {pause: 1ms}}\n"
    with pytest.raises(ScenarioError, match="expected less than the total content of 1MiB"):
        parse_scenario(replayed(more=event), "made.yaml")


MERGES = '{after: 512KiB, live: "aeron:udp?endpoint=${self}:24326|control=${a}:24324"}'


def merging(old="", new="", expect="merged_into_live"):
    text = text_of(archives="[{host: b, segment: 256KiB}]", expect=expect)
    text = text.replace(
        "aeron:udp?endpoint=${b}:24325|term",
        "aeron:udp?control-mode=dynamic|control=${a}:24324|term",
    )
    text = text.replace(
        'receive: "aeron:udp?endpoint=${b}:24325"',
        'receive: "aeron:udp?endpoint=${b}:24325|control=${a}:24324"',
    )
    text = text.replace("    recorded: b\n", f"    recorded: b\n    merges: {MERGES}\n")
    assert old in text
    return text.replace(old, new)


def test_a_merge_is_in_the_case():
    case = resolve(
        parse_scenario(merging(), "made.yaml"),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )
    live = "aeron:udp?endpoint=10.64.0.19:24326|control=10.64.0.3:24324"
    assert case.traffic[0].merges == MergeCase(after_bytes=512 << 10, live=live, port=24326)
    assert case.traffic[0].all_ports == (24324, 24325, 24326)
    assert (
        "the subscriber starts after 512KiB has been recorded, replays it, then joins"
        in explain(case)
    )
    assert Case.model_validate_json(case.to_json()) == case


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("after: 512KiB", "after: 1MiB", "expected less than the content of 1MiB"),
        ("${self}:24326", "${self}:24325", "uses port 24325: choose another port"),
        ("${self}:24326", "${a}:24326", "expected endpoint=${self}:PORT, found ${a}"),
        ("${self}:24326", "${c}:24326", "found 'c'"),
        ('24326|control=${a}:24324"', '24326"', "expected control=HOST:PORT"),
        ("control-mode=dynamic|", "", "expected control-mode=dynamic"),
        ("    recorded: b\n", "    recorded: a\n", "recording of its own host"),
        ("    recorded: b\n", "    recorded: b\n    partial: [b]\n", "with replays, consume"),
    ],
)
def test_an_invalid_merge_is_refused(old, new, message):
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(merging(old, new), "made.yaml")
    assert message in "\n".join(str(each) for each in raised.value.errors)


def test_an_archive_is_not_killed_during_a_merge():
    events = EVENTS % ("archive", KILL)
    with pytest.raises(ScenarioError, match="a merge ends with the archive that replays"):
        parse_scenario(merging("expect:", f"{events}expect:"), "made.yaml")


def test_a_check_of_merges_needs_a_merge():
    text = text_of(expect="merged_into_live")
    with pytest.raises(ScenarioError, match="needs traffic with `merges`"):
        parse_scenario(text, "made.yaml")


def copied(old="", new="", more=""):
    text = text_of(archives="[{host: b}, {host: a}]", more=more)
    text = text.replace("    recorded: b\n", "    recorded: b\n    replicated: a\n")
    assert old in text
    return text.replace(old, new)


def test_a_replication_is_in_the_case():
    case = resolve(
        parse_scenario(copied(), "made.yaml"),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )
    (one,) = case.traffic
    assert (one.recorded, one.replicated, one.archived) == ("b", "a", ("b", "a"))
    assert one.ends("replicator") == ("a",)
    assert case.ports == (*REPLICATION_PORTS, 24325)
    assert case_of().ports == (24325,)
    assert "replicated from there by the archive on a" in explain(case)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("replicated: a", "replicated: c", "host 'c' has no archive"),
        ("replicated: a", "replicated: b", "host b records the stream itself"),
        ("    recorded: b\n", "", "there is nothing to replicate"),
        (", {host: a}", "", "host 'a' has no archive"),
    ],
)
def test_an_invalid_replication_is_refused(old, new, message):
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(copied(old, new), "made.yaml")
    assert message in "\n".join(str(each) for each in raised.value.errors)


def test_archives_are_not_killed_during_a_replication():
    with pytest.raises(ScenarioError, match="replication ends with either archive"):
        parse_scenario(copied(more=EVENTS % ("archive", KILL)), "made.yaml")


def test_a_host_without_an_archive_has_none_to_kill():
    more = EVENTS % ("archive", KILL)
    assert "host b has no archive" in faults_of(archives="[{host: a}]", recorded="a", more=more)


def test_an_archive_may_have_a_small_disk():
    case = case_of(archives="[{host: b, segment: 256KiB, disk: 16MiB}]")
    assert case.archives[0].disk_bytes == 16 << 20
    assert "archive   on b, in files of 256KiB, on a disk of 16MiB" in explain(case)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"archives": "[{host: b, disk: 4MiB}]"}, "at least 8388608, found '4MiB'"),
        (
            {"archives": "[{host: b, segment: 8MiB, disk: 16MiB}]"},
            "expected room for two 8388608B segment files",
        ),
        (
            {
                "archives": "[{host: b, segment: 1MiB, disk: 16MiB}]",
                "more": EVENTS % ("archive", KILL),
            },
            "no event may affect an archive with a disk",
        ),
    ],
)
def test_an_invalid_small_disk_is_refused(options, text):
    assert text in faults_of(**options)
