"""Sentences about observed streams: one each, or the longest silence of many."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.run.observed import Interruption
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.results.sentences.observed_sentences import (
    STREAMS_MAX,
    observed_sentences,
)
from windtunnel.harness.verdict.views.reader_gaps import NEVER_NS

MS = 1_000_000


@dataclass
class Session:
    """The times of an observed session in milliseconds."""

    flow: TrafficCase
    times: tuple[int, ...]
    sent: tuple[int, int] = (0, NEVER_NS // MS)
    new_data_ns: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.new_data_ns = np.array(self.times, np.int64) * MS

    @property
    def sent_ns(self) -> tuple[int, int]:
        return self.sent[0] * MS, self.sent[1] * MS


@pytest.fixture
def case(tmp_path) -> Case:
    made = make_run(tmp_path)
    event = EventCase(
        id="stop", host="b", process="driver", trigger="after", at=1, action="pause", lasts_ns=1
    )
    return made.case.model_copy(update={"events": (event,)})


def event(began: int = 100, ended: int = 200) -> Interruption:
    return Interruption("pause", "stop", "driver on b", began * MS, ended * MS)


def session(case: Case, times: tuple[int, ...], name: str = "one", **sent) -> Session:
    return Session(case.traffic[0].model_copy(update={"id": name}), times, **sent)


EVENT = "pause 'stop' (driver on b) from 0.100 s to 0.200 s"


@pytest.mark.parametrize(
    ("times", "sent", "text"),
    [
        ((10, 90, 250), {}, "no new data for 160 ms, until 50 ms after its end"),
        # It begins within the event: what was before is no silence.
        ((250, 300), {"sent": (150, 400)}, "no new data for 100 ms, until 50 ms after its end"),
        ((10, 90), {}, "the last new data was at 0.090 s"),
        # It begins after the event, or has ended before it.
        ((250, 300), {"sent": (201, 400)}, None),
        ((10, 90), {"sent": (0, 99)}, None),
        ((), {}, None),
    ],
)
def test_a_session_is_silent_only_while_it_lasts(case, times, sent, text) -> None:
    shown, details = observed_sentences(case, [session(case, times, **sent)], [event()], 0)
    assert shown == ([] if text is None else [f"one at b: {EVENT}: {text}"])
    assert details == []


def test_only_the_first_event_without_new_data_after_it_is_named(case) -> None:
    sessions = [session(case, (10, 90))]
    shown, _ = observed_sentences(case, sessions, [event(), event(300, 400)], 0)
    assert shown == [f"one at b: {EVENT}: the last new data was at 0.090 s"]


def test_of_many_streams_the_longest_silence_is_described(case) -> None:
    nexts = (210, 250, 220, 230, 240)
    sessions = [session(case, (10, each), f"s{each}") for each in nexts]
    few, details = observed_sentences(case, sessions[:STREAMS_MAX], [event()], 0)
    assert len(few) == STREAMS_MAX
    assert details == []
    shown, details = observed_sentences(case, sessions, [event()], 0)
    assert shown == [
        f"s250 at b: {EVENT}: no new data for 240 ms, until 50 ms after its end "
        "(the longest silence of 5 streams)"
    ]
    assert details[:STREAMS_MAX] == few
    assert len(details) == len(sessions)


def test_of_many_streams_those_without_new_data_after_an_event_are_named(case) -> None:
    sessions = [session(case, (10, 90), f"s{index}") for index in range(STREAMS_MAX + 2)]
    shown, _ = observed_sentences(case, [*sessions, session(case, (10, 220))], [event()], 0)
    assert shown == [
        f"one at b: {EVENT}: no new data for 210 ms, until 20 ms after its end",
        f"{EVENT}: 6 streams had no new data after it: s0 at b, s1 at b, s2 at b, s3 at b and "
        "2 more",
    ]
