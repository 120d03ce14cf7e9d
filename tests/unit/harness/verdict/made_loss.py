"""What else may befall a made run: frames that come late or not at all, a reader that does."""

from dataclasses import replace

import numpy as np

from tests.unit.harness.verdict.made_run import STEP_NS, MadeRun, Packet
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.verdict.core.evidence import Evidence


def let_arrive(run: MadeRun, position: int, late_ns: int = 0) -> Packet:
    """A frame that the made link dropped reaches the subscriber's host."""
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    content = run.frame_bytes(int(index))
    sent = next(each for each in run.packets["a"] if each.payload == content)
    came = replace(sent, time_ns=sent.time_ns + STEP_NS // 2 + late_ns)
    run.packets["b"].append(came)
    return came


def lose(run: MadeRun, index: int) -> None:
    """A frame that the made link delivered never came."""
    content = run.frame_bytes(index)
    run.packets["b"] = [each for each in run.packets["b"] if each.payload != content]


def never_send(run: MadeRun, position: int) -> None:
    """The publisher's driver passed over a frame, which the made link dropped as well."""
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    content = run.frame_bytes(int(index))
    run.packets["a"] = [each for each in run.packets["a"] if each.payload != content]


def send_later(run: MadeRun, position: int, late_ns: int) -> None:
    """The publisher's driver sent a frame behind others."""
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    content = run.frame_bytes(int(index))
    for each in run.packets["a"]:
        if each.payload == content:
            each.time_ns += late_ns


def last_pad(run: MadeRun) -> int:
    """The last frame that ends a term without a message."""
    return int(np.flatnonzero(run.log.frames["frame_type"] == PAD)[-1])


def joined_at(run: MadeRun, index: int) -> Evidence:
    """The run, whose reader says that it joined at a message, and was given nothing before it."""
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


def change(run: MadeRun, **traffic: object) -> None:
    """Let the run's stream be another."""
    streams = tuple(each.model_copy(update=traffic) for each in run.case.traffic)
    run.case = run.case.model_copy(update={"traffic": streams})
