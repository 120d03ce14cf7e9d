"""Exercises: clients of the harness that use one feature of their drivers and verify what they
observe.

    exercises: [ipc-exclusive, spies]

Each runs between the scenario's first two hosts, next to its traffic. Only simulations have them.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from windtunnel.harness.scenario.schema.problem import Problem

ExerciseName = Literal[
    "abandoned-claims",
    "cool-down",
    "dying-client",
    "ended-streams",
    "freed-streams",
    "image-ends",
    "image-rejection",
    "ipc-exclusive",
    "ipc-shared",
    "long-terms",
    "lost-reader",
    "racing-claims",
    "receive-destinations",
    "responses",
    "returning-session",
    "scripted-paths",
    "scripted-publisher",
    "scripted-receiver",
    "scripted-responder",
    "send-destinations",
    "sessions",
    "shut-window",
    "spies",
    "untethered",
    "user-counters",
]
ABOUT: Mapping[ExerciseName, str] = {
    "abandoned-claims": "a client dies between claims and their commits, which block their streams",
    "cool-down": "a session that timed out does not return to a subscription without rejoin",
    "dying-client": "a client dies: its counter, its publication and its image end",
    "ended-streams": "a reader reads on after the end, and a closed publication does not return",
    "freed-streams": "closed streams leave no counter and no log buffer behind",
    "image-ends": "images end while others begin",
    "image-rejection": "a subscriber rejects an image, and its publisher learns the reason",
    "ipc-exclusive": "an exclusive IPC publication, with a slow and a late reader",
    "ipc-shared": "IPC publications that share a log, and one that does not",
    "long-terms": "a stream passes the end of a term of 1 GiB, and term ids wrap around",
    "lost-reader": "a receiver of a group stops reading and dies, and no longer blocks the others",
    "racing-claims": "a publisher passes its limit, and its reader moves by more than a term",
    "receive-destinations": "destinations of a subscription are added and removed",
    "responses": "publications on response channels answer one image each",
    "returning-session": "a session returns to a subscription without rejoin after its end",
    "scripted-paths": "one of two paths of a scripted stream is late, ends later, or is removed",
    "scripted-publisher": "a scripted publisher sends ends, over-runs and old heartbeats",
    "scripted-receiver": "a scripted receiver sends NAKs that no driver sends, and elicits SETUPs",
    "scripted-responder": "a scripted responder announces its stream twice",
    "send-destinations": "destinations of a publication are added and removed",
    "sessions": "sessions with chosen ids, and one that returns",
    "shut-window": "a spy and a publisher whose sender a receiver has stopped",
    "spies": "spies next to a subscription, and alone",
    "untethered": "an untethered subscription rests and joins again",
    "user-counters": "counters that clients add and remove",
}
PORTS: Mapping[ExerciseName, tuple[int, ...]] = {
    "abandoned-claims": (24_513,),
    "cool-down": (24_533,),
    "ended-streams": (24_537,),
    "freed-streams": (24_580, 24_581),
    "image-ends": (24_536,),
    "image-rejection": (24_530,),
    "long-terms": (24_517,),
    "lost-reader": (24_514, 24_515, 24_516),
    "racing-claims": (24_512,),
    "receive-destinations": (24_520, 24_521),
    "responses": (24_560, 24_561),
    "returning-session": (24_534,),
    "scripted-paths": (24_570, 24_571, 24_572, 24_573),
    "scripted-publisher": (24_574, 24_580, 24_575),
    "scripted-receiver": (24_576, 24_577),
    "scripted-responder": (24_578, 24_579),
    "send-destinations": (24_523, 24_524),
    "sessions": (24_540,),
    "shut-window": (24_511,),
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
