"""Scenarios of more than two hosts: the resolved cases, and the nearest invalid scenarios."""

import pytest

from windtunnel.harness.middlebox.rule_compiler import compile_rules
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve

PAYLOAD = Payload(path="payload.bin", sha256="ab" * 32, length_bytes=1000)
ADDRESSES = {"pub": "10.64.0.3", "sub1": "10.64.0.19", "sub2": "10.64.0.35"}
GOOD = """\
schema: windtunnel/1
name: made/many
about: made up
seeds: {root: 1}
network:
  hosts: [pub, sub1, sub2]
  links:
    - {between: [pub, sub1]}
    - {between: [pub, sub2], impairments: {pub->sub2: {delay: {mean: 5ms}}}}
traffic:
  - id: one
    stream: 1001
    from: pub
    to: [sub1, sub2]
    publication: exclusive
    channel: "aeron:udp?control-mode=dynamic|control=${pub}:24324|fc=min,g:/2|term-length=64k"
    receive: "aeron:udp?endpoint=${self}:24325|control=${pub}:24324|control-mode=dynamic"
    content: {bytes: 1KiB}
faults:
  - {id: lose, where: {link: pub->sub2}, what: {type: DATA}, act: {drop: 2%}}
expect: [delivered_once]
"""
MDC = "control-mode=dynamic|control=${pub}:24324|fc"
TWINS = (
    GOOD.replace("from: pub\n", "from: [sub1, sub2]\n")
    .replace("to: [sub1, sub2]\n", "to: pub\n")
    .replace("control-mode=dynamic|control=${pub}:24324|fc=min,g:/2", "endpoint=${pub}:24325|START")
    .replace("START", "session-id=7|init-term-id=1|term-id=1|term-offset=0")
    .replace("endpoint=${self}:24325|control=${pub}:24324|control-mode=dynamic", "MANUAL")
    .replace("MANUAL", "control-mode=manual|tags=5")
    .replace("    content", '    sources: ["aeron:udp?endpoint=${self}:24325"]\n    content')
    .replace("pub->sub2}, what", "sub2->pub}, what")
)


MULTICAST = "endpoint=224.20.30.39:24325|interface=${self}"


def named(count):
    return [f"h{index}" for index in range(count)]


def multicast(text=GOOD):
    text = text.replace(MDC, f"{MULTICAST}|fc")
    return text.replace(
        "endpoint=${self}:24325|control=${pub}:24324|control-mode=dynamic", MULTICAST
    )


def star(hosts, links):
    """Return a group of `hosts` around the first one, in which `links` have a link."""
    names = named(hosts)
    edges = "".join(f"\n    - {{between: [h0, {each}]}}" for each in names[1 : links + 1])
    text = multicast().replace("sub1, sub2", ", ".join(names[1 : links + 1]))
    text = text.replace("fc=min,g:/2", f"fc=min,g:/{links}")
    text = text.replace("hosts: [pub, ", "hosts: [h0, ").replace("from: pub", "from: h0")
    before, after = text.split("  links:")
    return f"{before}  links:{edges}\ntraffic:{after.split('traffic:')[1]}".replace(
        "pub->sub2", "h0->h2"
    )


def resolved(text=GOOD):
    scenario = parse_scenario(text, "made.yaml")
    return resolve(scenario, seed=1, fidelity="netns", addresses=ADDRESSES, payload=PAYLOAD)


def faults(text):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, "made.yaml")
    return "\n".join(caught.value.errors)


def test_each_reader_has_its_own_flow():
    case = resolved()
    assert [host.name for host in case.hosts] == ["pub", "sub1", "sub2"]
    assert case.link_names == ("pub->sub1", "sub1->pub", "pub->sub2", "sub2->pub")
    assert case.faults[0].links == ("pub->sub2",)
    assert [each.link for each in case.impairments] == ["pub->sub2"]
    (traffic,) = case.traffic
    first, second = traffic.flows
    assert first is traffic
    assert (second.from_host, second.to_host, second.role) == ("pub", "sub2", "one at sub2")
    assert second.receive.startswith("aeron:udp?endpoint=10.64.0.35:24325|control=10.64.0.3:24324")
    assert traffic.all_ports == (24324, 24325)


def test_readers_on_one_host_have_flows_too():
    case = resolved(TWINS)
    assert [flow.role for flow in case.traffic[0].flows] == ["one from sub1", "one from sub2"]
    assert case.traffic[0].sources == (("pub", "aeron:udp?endpoint=10.64.0.3:24325"),)


def test_one_link_may_be_written_as_a_list():
    second = GOOD.index("    - {between: [pub, sub2]")
    pair = GOOD[:second] + GOOD[GOOD.index("traffic:") :]
    pair = pair.replace(", sub2]", "]").replace("pub->sub2}, what", "pub->sub1}, what")
    pair = pair.replace("fc=min,g:/2", "fc=min,g:/1")
    case = resolved(pair)
    assert (case.links, case.link_names) == ((), ("a->b", "b->a"))
    assert (case.traffic[0].to_hosts, case.traffic[0].flows) == ((), case.traffic)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[pub->sub1, pub->sub2]", ("pub->sub1", "pub->sub2")),
        ('"pub->*"', ("pub->sub1", "pub->sub2")),
        ('["*->pub", pub->sub1]', ("sub1->pub", "sub2->pub", "pub->sub1")),
        ("both", ("pub->sub1", "sub1->pub", "pub->sub2", "sub2->pub")),
        ('[pub->sub2, "*->sub2"]', ("pub->sub2",)),
    ],
)
def test_a_rule_names_links(link, expected):
    text = GOOD.replace("link: pub->sub2", f"link: {link}").replace("type: DATA", "type: ANY")
    assert resolved(text).faults[0].links == expected


def test_each_host_may_have_a_channel_of_its_own():
    other = (
        '    receives: {sub2: "aeron:udp?endpoint=${self}:24326|control=${pub}:24324"}\n    content'
    )
    flows = resolved(GOOD.replace("    content", other)).traffic[0].flows
    assert "10.64.0.19:24325" in flows[0].receive
    assert flows[1].receive == "aeron:udp?endpoint=10.64.0.35:24326|control=10.64.0.3:24324"


def test_explains_the_readers():
    text = explain(resolved())
    assert "pub at 10.64.0.3, sub1 at 10.64.0.19, sub2 at 10.64.0.35" in text
    assert "pub and sub1, pub and sub2" in text
    assert "one: pub to sub1, sub2" in text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("hosts: [pub, sub1, sub2]", "hosts: [pub, sub1, sub2, far]", "host 'far' has no link"),
        ("link: pub->sub2", "link: sub1->sub2", "or both, found 'sub1->sub2'"),
        ("link: pub->sub2", 'link: "far->*"', "found 'far->*'"),
        ("link: pub->sub2", "link: []", "at least 1"),
        ("between: [pub, sub2]", "between: [sub1, pub]", "two links between sub1 and pub"),
        ("between: [pub, sub2]", "between: [sub1, sub2]", "no link between pub and sub2"),
        ("to: [sub1, sub2]", "to: [sub1, sub1]", "expected distinct hosts"),
        ("to: [sub1, sub2]", "to: [sub1, pub]", "publisher and subscriber on different hosts"),
        ("to: [sub1, sub2]", "to: [sub1, far]", "found 'far'"),
        ("    content", "    partial: [pub]\n    content", "found 'pub'"),
        ("    content", '    receives: {pub: "aeron:udp?endpoint=x:1"}\n    content', "one of the"),
        ("    content", '    destinations: ["aeron:udp?endpoint=x:1"]\n    content', "neither"),
        (MDC, "endpoint=${sub1}:24325|fc", "an endpoint reaches one host"),
        ("fc=min,g:/2", "fc=slow", "expected max, min or tagged"),
        ("control=${pub}:24324|fc", "control=${pub}|fc", "expected control=HOST:PORT"),
        (MDC, "control-mode=fast|fc", "expected dynamic"),
        ("hosts: [pub, sub1, sub2]", f"hosts: {named(33)}", "at most 32 items"),
        ("    content", "    starts_with: 3\n    content", "subscribers from 1 to 2, found 3"),
        ("    content", "    starts_with: 0\n    content", "at least 1"),
        ("    content", "    starts_with: al\n    content", "expected 'all'"),
        ("link: pub->sub2", 'link: "pub->*", shared: true', "one sends a packet to each receiver"),
        ("link: pub->sub2", "link: pub->sub2, shared: true", "from one sender, such as"),
        ("link: pub->sub2", "link: both, shared: true", "found pub->sub1, sub1->pub, pub->sub2"),
        ("  links:\n    -", "  link: {between: [pub, sub1]}\n  links:\n    -", "link and links"),
    ],
)  # fmt: skip
def test_refuses_invalid_scenarios(old, new, expected):
    assert old in GOOD
    assert expected in faults(GOOD.replace(old, new))


def test_thirty_two_hosts_need_thirty_one_links():
    addresses = {name: f"10.64.0.{3 + 8 * index}" for index, name in enumerate(named(32))}
    scenario = parse_scenario(star(32, 31), "made.yaml")
    case = resolve(scenario, seed=1, fidelity="sim", addresses=addresses, payload=PAYLOAD)
    assert len(case.hosts) == 32
    assert len(case.link_names) == 62
    links, _, _ = compile_rules(case.model_copy(update={"faults": (every_link(case),)}))
    assert links["links"].tolist() == [(1 << 62) - 1]
    crowded = star(9, 8).replace("links:", "links:" + "".join(
        f"\n    - {{between: [h{one}, h{two}]}}" for two in range(2, 9) for one in range(1, two)
    ))  # fmt: skip
    assert "at most 31 items" in faults(crowded)


def every_link(case):
    return case.faults[0].model_copy(update={"links": case.link_names})


def test_a_publisher_may_wait_for_its_subscribers():
    for text, count in (("all", 2), ("1", 1)):
        made = GOOD.replace("    content", f"    starts_with: {text}\n    content")
        assert resolved(made).traffic[0].starts_with == count
    assert resolved().traffic[0].starts_with == 0


def test_explain_names_the_subscribers_that_a_publisher_waits_for():
    most = GOOD.replace("fc=min,g:/2", "fc=max")
    assert "sub1 may miss the start: fc=max does not wait" in explain(resolved(most))
    waiting = most.replace("    content", "    starts_with: all\n    content")
    text = explain(resolved(waiting))
    assert "  starts when all 2 subscribers have joined\n" in text
    assert "sub1 may fall behind: fc=max does not wait" in text
    assert "may miss the start" not in text
    least = waiting.replace("fc=max", "fc=min")
    assert "may " not in explain(resolved(least))
    one = least.replace("starts_with: all", "starts_with: 1")
    assert "  starts when 1 of 2 subscribers have joined\n" in explain(resolved(one))
    assert "sub1 may miss the start" in explain(resolved(one))


def test_a_publisher_that_is_restarted_cannot_wait():
    event = "events: [{id: crash, whom: {host: pub, process: publisher}, when: {after: 1s},"
    text = f"{GOOD}{event} act: {{kill: {{restart_after: 1s}}}}}}]\n"
    text = text.replace("    content", "    rejoins: true\n    content")
    text = text.replace("delivered_once", "delivered_in_parts")
    assert parse_scenario(text, "made.yaml")
    waiting = text.replace("    content", "    starts_with: all\n    content")
    assert "event 'crash' restarts a process on host pub" in faults(waiting)


def test_a_publisher_next_to_an_archive_that_is_restarted_can_wait():
    archive = "archives: [{host: pub, segment: 1MiB}]\ntraffic:"
    text = GOOD.replace("traffic:", archive)
    text = text.replace("    content", "    starts_with: all\n    recorded: pub\n    content")
    event = "events: [{id: crash, whom: {host: pub, process: archive}, when: {after: 1s},"
    assert parse_scenario(f"{text}{event} act: {{kill: {{restart_after: 11s}}}}}}]\n", "made.yaml")


def test_a_rule_before_the_fan_out_is_for_multicast_and_comes_first():
    shared = multicast().replace("link: pub->sub2", 'link: "pub->*", shared: true')
    case = resolved(shared)
    assert case.faults[0].is_shared
    assert case.faults[0].copies_of_draws == 2
    assert "before packets are copied to these links: the same frames" in explain(case)
    rule = "  - {id: own, where: {link: pub->sub2}, what: {type: DATA}, act: {drop: 1%}}\n"
    assert parse_scenario(shared.replace("expect:", f"{rule}expect:"), "made.yaml")
    assert "expected shared rules before rules for single links, found 'own'" in faults(
        shared.replace("faults:\n", f"faults:\n{rule}")
    )


@pytest.mark.parametrize("impairments", ["pub->sub2", "sub2->pub", "both"])
def test_netem_has_one_direction_to_a_host(impairments):
    text = GOOD.replace(
        "impairments: {pub->sub2:", f"backend: netem, impairments: {{{impairments}:"
    )
    if impairments == "pub->sub2":
        assert parse_scenario(text, "made.yaml")
    else:
        assert "distinguish this link's packets to pub" in faults(text)


def test_readers_on_one_host_need_the_same_start():
    assert parse_scenario(TWINS, "made.yaml")
    assert "expected the same session-id" in faults(TWINS.replace("session-id=7|", ""))
    other = '    channels: {sub2: "aeron:udp?endpoint=${pub}:24326|session-id=8"}\n    content'
    assert "expected the same session-id" in faults(TWINS.replace("    content", other))


def test_checks_name_readers_and_each_reader_has_a_check():
    about = GOOD.replace("expect: [delivered_once]", "expect: [{delivered_once: {to: sub2}}]")
    assert parse_scenario(about, "made.yaml")
    assert "expected one of the subscribers sub1, sub2, found 'pub'" in faults(
        about.replace("to: sub2", "to: pub")
    )
    partial = about.replace("    content", "    partial: [sub2]\n    content")
    assert parse_scenario(partial, "made.yaml")
    assert "add one with `to: sub2`" in faults(partial.replace("to: sub2", "to: [sub1]"))
