"""Sentences about the silences of observed streams around the events of a run.

quotes at b: pause 'stop' (driver on b) from 2.000 s to 7.000 s: no new data for 5.21 s, until
209 ms after its end

Of an event that concerns many streams, the longest silence is described, and how many there were.
A stream that had ended before an event, or that began after it, is not concerned.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.run.observed import Interruption
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.results.observed_rows import ObservedWire
from windtunnel.harness.verdict.results.sentences.reading_sentences import (
    NEW_DATA,
    REPEATED_MAX,
    event_text,
    silence,
    silence_text,
)
from windtunnel.harness.verdict.views.interruptions import concerns_observed
from windtunnel.harness.verdict.views.reader_gaps import NEVER_NS

STREAMS_MAX = 4
"""Maximum number of streams that have a sentence each about the same event."""


class Silence(NamedTuple):
    """A silence of one session of an observed stream around one event."""

    name: str
    event: Interruption
    lasted_ns: int
    """NEVER_NS if no new data followed."""
    text: str


def observed_sentences(
    case: Case, observed: Sequence[ObservedWire], happened: Sequence[Interruption], start_ns: int
) -> tuple[list[str], list[str]]:
    """Return the sentences to show, and those about each stream that they summarize."""
    by_event: dict[str, list[Silence]] = {each.id: [] for each in happened}
    for each in observed:
        for found in _silences(case, each, happened, start_ns):
            by_event[found.event.id].append(found)
    shown, details = [], []
    for silences in by_event.values():
        texts = [each.text for each in silences]
        if len({each.name for each in silences}) > STREAMS_MAX:
            details += texts
            texts = list(_summary(silences, start_ns))
        shown += texts
    return shown, details


def _silences(
    case: Case, observed: ObservedWire, happened: Sequence[Interruption], start_ns: int
) -> Iterator[Silence]:
    """Yield the silences of a session around the events that concern it. Only the first event after
    which there was no new data is named.
    """
    times_ns = observed.new_data_ns
    if len(times_ns) == 0:
        return
    name = f"{observed.flow.id} at {observed.flow.to_host}"
    by_id: dict[str, list[Silence]] = {}
    has_followed = True
    for event in happened:
        began_ns, ended_ns = observed.sent_ns
        if not (began_ns < event.ended_ns and event.began_ns < ended_ns and has_followed):
            continue
        if not concerns_observed(case, observed.flow, event):
            continue
        lasted_ns, next_ns = silence(times_ns, event, began_ns)
        has_followed = next_ns != NEVER_NS
        text = f"{name}: {silence_text(times_ns, event, start_ns, NEW_DATA, began_ns)}"
        by_id.setdefault(event.id, []).append(Silence(name, event, lasted_ns, text))
    for repeated in by_id.values():
        if len(repeated) <= REPEATED_MAX:
            yield from repeated
            continue
        worst = max(repeated, key=lambda each: each.lasted_ns)
        text = f"{worst.text} (the longest silence of {len(repeated)} repetitions)"
        yield worst._replace(text=text)


def _summary(silences: Sequence[Silence], start_ns: int) -> Iterator[str]:
    """Yield sentences about the longest silence of many streams around the same event, and about
    the streams that had no new data after it.
    """
    followed = [each for each in silences if each.lasted_ns != NEVER_NS]
    if followed:
        worst = max(followed, key=lambda each: each.lasted_ns)
        count = len({each.name for each in followed})
        yield worst.text + (f" (the longest silence of {count} streams)" if count > 1 else "")
    last = list(dict.fromkeys(each.name for each in silences if each.lasted_ns == NEVER_NS))
    if last:
        text = ", ".join(last[:STREAMS_MAX])
        more = len(last) - STREAMS_MAX
        text += f" and {more} more" if more > 0 else ""
        event = event_text(silences[0].event, start_ns)
        yield f"{event}: {counted(len(last), 'stream')} had no new data after it: {text}"
