"""A shared rule affects the same frames on all its links, and follows the reference there."""

import numpy as np
import pytest

from tests.naive.fault_rules import NaiveFrame, NaiveRules
from tests.unit.harness.middlebox.synthetic_case import BILLION, case, data, fault, setup, with_more
from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.middlebox.engine.frame_match import match_frame
from windtunnel.harness.middlebox.engine.state import make_engine
from windtunnel.harness.middlebox.rules import NO_RULE
from windtunnel.harness.scenario.resolved.case import HostCase
from windtunnel.harness.scenario.resolved.link_case import LinkCase, link_names

HOSTS = ("a", "b", "c", "d")
LINKS = tuple(LinkCase(between=("a", host)) for host in HOSTS[1:])
NAMES = link_names(LINKS)
OUTWARD = NAMES[::2]
CHAIN = {"chance": "two states", "chance_ppb": (BILLION // 50, BILLION // 5, BILLION, 0)}
FOUR = {"chance": "four states", "chance_ppb": tuple(BILLION // n for n in (50, 5, 9, 9, 99))}


def group_case(*faults):
    hosts = tuple(
        HostCase(name=name, address=f"10.64.0.{3 + 8 * index}") for index, name in enumerate(HOSTS)
    )
    return case(*faults).model_copy(update={"hosts": hosts, "links": LINKS})


def frames_of():
    """Return two transmissions of a stream, and heartbeats."""
    frames = [data(position) for position in range(0, 64 * 500, 64)]
    beats = [data(64 * 500, length=0) for _ in range(50)]
    return [("SETUP", setup())] + [("DATA", each) for each in frames] * 2 + [
        ("HEARTBEAT", each) for each in beats
    ]  # fmt: skip


def hits(made, link):
    """Return the indexes of the frames that the engine affects on one link."""
    buf_of = [np.frombuffer(raw, dtype=np.uint8).copy() for _, raw in frames_of()]
    return [
        index
        for index, buf in enumerate(buf_of)
        if match_frame(made, buf, 0, len(buf), link, 1 + index).rule != NO_RULE
    ]


def naive_hits(of_case, link):
    rules = NaiveRules(of_case)
    found, attempts = [], {}
    for index, (name, raw) in enumerate(frames_of()):
        frame = NaiveFrame(link, name, raw, 1 + index, session=(link, 1), number=1)
        if name == "DATA":
            frame.place = frame.term_offset
            frame.attempt = attempts[frame.place] = attempts.get(frame.place, 0) + 1
        if rules.match(frame) is not None:
            found.append(index)
    return found


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("types", [("DATA",), ("DATA", "HEARTBEAT")])
@pytest.mark.parametrize("details", [{}, CHAIN, FOUR])
def test_a_shared_rule_affects_the_same_frames_on_all_its_links(types, details):
    assert set(types) <= set(frame_class.NAMES.values())
    rule = with_more(fault("drop", 0.1, types, OUTWARD), is_shared=True, **details)
    made_of = group_case(rule)
    made = make_engine(made_of, datagram_length_max=1408, envelope_length_max=64)
    found = [hits(made, NAMES.index(name)) for name in OUTWARD]
    assert found[0] == found[1] == found[2] == naive_hits(made_of, 4) == naive_hits(made_of, 0)
    assert len(found[0]) > 20


@pytest.mark.parametrize("details", [{}, CHAIN, FOUR])
def test_a_rule_that_is_not_shared_affects_other_frames_on_each_link(details):
    made_of = group_case(with_more(fault("drop", 0.1, ("DATA",), OUTWARD), **details))
    made = make_engine(made_of, datagram_length_max=1408, envelope_length_max=64)
    found = [hits(made, NAMES.index(name)) for name in OUTWARD]
    assert found == [naive_hits(made_of, NAMES.index(name)) for name in OUTWARD]
    assert found[0] != found[1] != found[2] != found[0]
