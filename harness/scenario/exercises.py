"""Exercises: clients of the harness that use one feature of their drivers and verify what they
observe.

    exercises: [ipc-exclusive, spies]

Each runs between the scenario's first two hosts, next to its traffic. Only simulations have them.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from windtunnel.harness.scenario.schema.problem import Problem

ExerciseName = Literal[
    "dying-client",
    "image-rejection",
    "ipc-exclusive",
    "ipc-shared",
    "receive-destinations",
    "responses",
    "send-destinations",
    "sessions",
    "spies",
    "untethered",
    "user-counters",
]
ABOUT: Mapping[ExerciseName, str] = {
    "dying-client": "a client dies: its counter, its publication and its image end",
    "image-rejection": "a subscriber rejects an image, and its publisher learns the reason",
    "ipc-exclusive": "an exclusive IPC publication, with a slow and a late reader",
    "ipc-shared": "IPC publications that share a log, and one that does not",
    "receive-destinations": "destinations of a subscription are added and removed",
    "responses": "publications on response channels answer one image each",
    "send-destinations": "destinations of a publication are added and removed",
    "sessions": "sessions with chosen ids, and one that returns",
    "spies": "spies next to a subscription, and alone",
    "untethered": "an untethered subscription rests and joins again",
    "user-counters": "counters that clients add and remove",
}
PORTS: Mapping[ExerciseName, tuple[int, ...]] = {
    "image-rejection": (24_530,),
    "receive-destinations": (24_520, 24_521),
    "responses": (24_560, 24_561),
    "send-destinations": (24_523, 24_524),
    "sessions": (24_540,),
    "spies": (24_510,),
    "untethered": (24_550,),
}
"""UDP ports of the exercises, which run at the same time."""
_LEVEL = "sim"


def exercise_problems(
    exercises: tuple[ExerciseName, ...], fidelity: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield the problems with a scenario's exercises."""
    if exercises and set(fidelity) != {_LEVEL}:
        text = f"only simulations have exercises: expected `fidelity: [{_LEVEL}]`"
        yield Problem(("exercises",), f"{text}, found {', '.join(fidelity)}")
    for index, name in enumerate(exercises):
        if name in exercises[:index]:
            yield Problem(("exercises", index), f"{name} occurs twice: remove one of them")
