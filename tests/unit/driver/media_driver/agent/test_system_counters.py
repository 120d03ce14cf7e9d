"""System counters have exactly Aeron's labels."""

import re
from pathlib import Path

import pytest

from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.context import Context

MEDIA_DRIVER = Path(system_counters.__file__).parents[1]
AGENTS = {
    "sender": ("sender/sender", "sender/publication_sender", "sender/sender_control"),
    "receiver": ("receiver/receiver", "receiver/image_receiver", "receiver/dispatcher"),
    "conductor": (
        "conductor/conductor",
        "conductor/driver_resources",
        "agent/agent_proxy",
        "conductor/client_registry",
    ),
}
ADDITION = re.compile(r"counters\.(increment|add|add_atomic)\([^()]*?system_counters\.(\w+)")

GOLDEN = Path(__file__).parents[4] / "golden" / "cnc-one-message" / "aeron-stat.txt"
LINE = re.compile(r"^ *(\d+): +([\d,-]+) - (.*)$")
OWN_VERSION = re.compile(r"version=\S+ commit=\S+")


def stat_lines():
    found = [
        match.groups() for line in GOLDEN.read_text().splitlines() if (match := LINE.match(line))
    ]
    return {int(number): (int(value.replace(",", "")), label) for number, value, label in found}


def test_labels_are_those_of_aeron_stat():
    real = stat_lines()
    ours = system_counters.labels(Context(threading_mode="SHARED"))
    assert len(ours) == 46
    for counter_id, label in enumerate(ours):
        expected = OWN_VERSION.sub(system_counters.VERSION_TEXT, real[counter_id][1])
        assert label == expected.rstrip(), counter_id


def test_versions_are_those_of_aeron_stat():
    real = stat_lines()
    assert real[system_counters.AERON_VERSION][0] == system_counters.VERSION_NUMBER
    assert (
        real[system_counters.CONTROL_PROTOCOL_VERSION][0] == system_counters.CONTROL_PROTOCOL_NUMBER
    )


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("NAKS_SENT", "NAKs sent"),
        ("STATUS_MESSAGES_REJECTED", "Status Messages rejected"),
        ("LOSS_GAP_FILLS", "Loss gap fills"),
        ("RETRANSMITTED_BYTES", "Retransmitted bytes"),
        ("FLOW_CONTROL_OVER_RUNS", "Flow control over runs"),
        ("FLOW_CONTROL_UNDER_RUNS", "Flow control under runs"),
        ("INVALID_PACKETS", "Invalid packets"),
        ("SHORT_SENDS", "Short sends"),
        ("CLIENT_TIMEOUTS", "Client liveness timeouts"),
        ("BYTES_CURRENTLY_MAPPED", "Bytes currently mapped"),
        ("ERROR_FRAMES_RECEIVED", "Error Frames received"),
    ],
)
def test_a_name_is_the_index_of_its_label(name, label):
    assert (
        system_counters.labels(Context(threading_mode="DEDICATED"))[getattr(system_counters, name)]
        == label
    )


def test_the_threading_mode_is_in_the_labels_of_cycle_times():
    mine, other = (
        system_counters.labels(Context(threading_mode="DEDICATED")),
        system_counters.labels(Context(threading_mode="SHARED")),
    )
    differing = [index for index in range(len(mine)) if mine[index] != other[index]]
    assert differing == list(range(26, 32))


def test_a_counter_that_two_agents_change_is_changed_atomically():
    """A plain addition is a load and a store: two threads would lose each other's work."""
    moves = {
        agent: [
            move
            for module in modules
            for move in ADDITION.findall((MEDIA_DRIVER / f"{module}.py").read_text())
        ]
        for agent, modules in AGENTS.items()
    }
    assert all(moves.values())
    for agent, mine in moves.items():
        others = {name for other in moves if other != agent for _, name in moves[other]}
        assert [name for kind, name in mine if kind != "add_atomic" and name in others] == []
