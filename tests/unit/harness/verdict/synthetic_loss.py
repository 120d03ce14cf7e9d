"""Changes to a synthetic run: frames that arrive late or never, a subscriber that joins late."""

from dataclasses import replace

import numpy as np

from tests.unit.harness.verdict.synthetic_run import STEP_NS, Packet, SyntheticRun
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.verdict.core.evidence import Evidence


def let_arrive(run: SyntheticRun, position: int, late_ns: int = 0) -> Packet:
    """Let a dropped frame arrive at the subscriber's host."""
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    content = run.frame_bytes(int(index))
    sent = next(each for each in run.packets["a"] if each.payload == content)
    came = replace(sent, time_ns=sent.time_ns + STEP_NS // 2 + late_ns)
    run.packets["b"].append(came)
    return came


def lose(run: SyntheticRun, index: int) -> None:
    """Lose a frame that had arrived."""
    content = run.frame_bytes(index)
    run.packets["b"] = [each for each in run.packets["b"] if each.payload != content]


def never_send(run: SyntheticRun, position: int) -> None:
    """Let the publisher's driver skip a frame that was dropped as well."""
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    content = run.frame_bytes(int(index))
    run.packets["a"] = [each for each in run.packets["a"] if each.payload != content]


def send_later(run: SyntheticRun, position: int, late_ns: int) -> None:
    """Let the publisher's driver send a frame after others."""
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    content = run.frame_bytes(int(index))
    for each in run.packets["a"]:
        if each.payload == content:
            each.time_ns += late_ns


def last_pad(run: SyntheticRun) -> int:
    """Return the index of the last PAD frame."""
    return int(np.flatnonzero(run.log.frames["frame_type"] == PAD)[-1])


def joined_at(run: SyntheticRun, index: int) -> Evidence:
    """Return the run with a subscriber that joined at a message and received none before it."""
    starts = run.log.frames["position"][run.log.frames["message"] == index]
    position = int(starts[0])
    run.messages = [each for each in run.messages if each[0] > position]
    run.frames = [each for each in run.frames if each[0] >= position]
    run.seen_ns.clear()
    run.lay_out_logs()
    path = run.write()
    document = run.folder.host("b").subscriber(run.traffic.id).document
    facts = SubscriberFacts.read(document)
    assert facts is not None
    replace(facts, join_position=position).write(document)
    return Evidence(path)


def change(run: SyntheticRun, **traffic: object) -> None:
    """Change fields of the run's traffic."""
    streams = tuple(each.model_copy(update=traffic) for each in run.case.traffic)
    run.case = run.case.model_copy(update={"traffic": streams})
