"""A scenario with two applications and no traffic."""

from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Case, Payload
from windtunnel.harness.scenario.resolved.resolution import resolve

SAMPLE = """\
schema: windtunnel/1
name: made/applications
about: Made up.
seeds: {root: 1}
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: 5ms}}}
applications:
  - id: service
    on: b
    command: [service, --listen, "${b}:24325", "${scenario.dir}/settings"]
    env: {WHERE: "${aeron.dir}/x", PEER: "${a}"}
    ready: {log: "service started"}
    stop: {signal: INT, within: 3s}
    expect: {exit: 7, log_never: ["Exception"]}
  - id: client
    on: a
    command: ["${harness.python}", client.py]
    driver: embedded
    expect: {ends_by_itself: true}
budget: {wall: 20s}
"""


def changed(old: str, new: str) -> str:
    assert SAMPLE.count(old) == 1, old
    return SAMPLE.replace(old, new)


ADDRESSES = {"a": "10.0.0.3", "b": "10.0.1.3"}


def resolved(text: str = SAMPLE, seed: int = 1, addresses: dict[str, str] = ADDRESSES) -> Case:
    """Return the resolved case of a scenario with the hosts a and b, or those with addresses."""
    return resolve(
        parse_scenario(text, "made.yaml"),
        seed=seed,
        fidelity="netns",
        addresses=addresses,
        payload=Payload(path="p", sha256="", length_bytes=1),
    )
