"""Scenarios of multicast groups: losses before the fan-out, `starts_with`, and 32 hosts."""

from pathlib import Path

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.verdict.core.evidence import Evidence

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)
GROUP = "endpoint=224.20.30.39:24325|interface=${self}"


def scenario(folder: Path, hosts: int, *, channel: str, where: str = "", more: str = "") -> Path:
    """Write a scenario of a stream to all other hosts, whose links lose first transmissions."""
    names = [f"h{index}" for index in range(hosts)]
    links = "\n".join(
        f"    - {{between: [h0, {name}], impairments: {{both: {{delay: 1ms}}}}}}"
        for name in names[1:]
    )
    text = f"""\
schema: windtunnel/1
name: made/group
about: A multicast group.
seeds: {{root: 3}}
fidelity: [sim]
network:
  hosts: [{", ".join(names)}]
  links:
{links}
traffic:
  - id: ticks
    stream: 1001
    from: h0
    to: [{", ".join(names[1:])}]
    publication: exclusive
    channel: "aeron:udp?{GROUP}|{channel}|term-length=64k"
    receive: "aeron:udp?{GROUP}"
    content: {{messages: 200, message: 1KiB, rate: 2000 msg/s}}
{more}
faults:
  - id: lose
    where: {{link: "h0->*"{where}}}
    what: {{type: DATA}}
    attempt: 1
    act: {{drop: 10%}}
expect: [delivered_once]
budget: {{wall: 90s}}
"""
    path = folder / "group.yaml"
    path.write_text(text)
    return path


def lost(folder: Path) -> dict[int, set[int]]:
    """Return the positions of dropped frames by link direction."""
    decisions = read_decisions(RunDir(folder).decisions)
    assert decisions is not None
    return {
        link: set(decisions[decisions["link"] == link]["position"].tolist())
        for link in set(decisions["link"].tolist())
    }


@pytest.mark.parametrize("where", [pytest.param("", marks=pytest.mark.full), ", shared: true"])
def test_only_losses_before_the_fan_out_are_the_same_on_all_links(tmp_path, where):
    result = run(scenario(tmp_path, 4, channel="fc=min,g:/3", where=where), tmp_path)
    assert result.outcome == "PASS"
    found = list(lost(result.run_dir).values())
    assert len(found) == 3
    assert all(5 < len(each) < 50 for each in found)
    assert (found[0] == found[1] == found[2]) == bool(where)


@pytest.mark.full
def test_a_stream_that_starts_with_all_is_joined_at_its_start(tmp_path):
    # Its first SETUPs are lost on the way to h2. Without `starts_with`, h2 never joins.
    path = scenario(tmp_path, 3, channel="fc=max", more="    starts_with: all")
    # The run ends when the image of h1 has timed out.
    text = path.read_text().replace("faults:", """timeouts: {image_liveness: 1s}
faults:
  - {id: late, where: {link: h0->h2}, what: {type: SETUP}, when: {for: 40ms}, act: {drop: always}}
  - {id: first, where: {link: h0->h2}, what: {type: SETUP, order: {from: 1, to: 5}},
     act: {drop: always}}""")  # fmt: skip
    path.write_text(text)
    result = run(path, tmp_path)
    evidence = Evidence(result.run_dir)
    (traffic,) = evidence.case.traffic
    subscribers = [evidence.subscriber(flow) for flow in traffic.flows]
    # A subscriber that has not joined has position 0, too.
    assert all(each.session_id for each in subscribers)
    assert [each.join_position for each in subscribers] == [0, 0]


@pytest.mark.full
def test_losses_before_the_fan_out_are_the_same_for_thirty_two_hosts(tmp_path):
    path = scenario(tmp_path, 32, channel="fc=min,g:/31")
    path.write_text(path.read_text().replace("messages: 200", "messages: 50"))
    result = run(path, tmp_path)
    assert result.outcome == "PASS"
    assert set(lost(result.run_dir)) == set(range(0, 62, 2))


@pytest.mark.full
def test_a_publisher_waits_while_too_few_receivers_of_its_group_are_left(tmp_path):
    """A pause beyond the receiver timeout disconnects the publication, as Aeron's rules say."""
    event = (
        "events:\n  - {id: out, whom: {host: h3}, when: {after: 30ms}, act: {pause: 1s}}\nexpect:"
    )
    path = scenario(tmp_path, 4, channel="fc=min,g:/3,t:300ms")
    path.write_text(path.read_text().replace("expect:", event))
    result = run(path, tmp_path)
    assert result.outcome == "PASS"
    evidence = Evidence(result.run_dir)
    (traffic,) = evidence.case.traffic
    assert 100_000_000 < evidence.publisher(traffic).not_connected_ns < 1_200_000_000
