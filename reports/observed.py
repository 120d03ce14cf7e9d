"""HTML of what a run's applications saw: sentences, and lists of stalls and filled ranges.

sentences        below the verdict
stalls           when, how long, why     folded
filled ranges    where, how long, why    folded
"""

from windtunnel.harness.artifact.run.observed import (
    NS_PER_S,
    FilledRange,
    Observations,
    ReaderObservations,
    Stall,
    clock_text,
)
from windtunnel.harness.artifact.run.result_row import causes_text, duration
from windtunnel.harness.artifact.run.verdict import observations_of
from windtunnel.reports.evidence import RunDocuments
from windtunnel.reports.html import Markup, details, element, joined, number, table

SENTENCES_MAX = 40
"""Maximum number of sentences on the page. verdict.json has all of them."""


def sentences(run: RunDocuments) -> Markup:
    """Return the sentences about a run's applications as an HTML list."""
    observed = observations_of(run.verdict)
    found = observed.all_sentences
    if not found:
        return Markup("")
    items = [element("li", each) for each in found[:SENTENCES_MAX]]
    if len(found) > SENTENCES_MAX:
        items.append(element("li", f"{len(found) - SENTENCES_MAX} more: see verdict.json"))
    title = element("h3", joined([observed.title.capitalize(), _zero(observed)]))
    return joined([title, element("ul", joined(items), class_="observed")])


def _zero(observed: Observations) -> Markup:
    """Return which time is 0 s, as a remark."""
    if observed.is_virtual or not observed.start_ns:
        return Markup("")
    return element("span", f" · 0 s is {clock_text(observed.start_ns)}", class_="where")


def lists(run: RunDocuments) -> Markup:
    """Return the stalls and the filled ranges of all subscribers as folded HTML tables."""
    observed = observations_of(run.verdict)
    stalls = [
        [*_where(observed, reader, each.began_ns), *_stall(each)]
        for reader in observed.readers
        for each in reader.stalls
    ]
    filled = [
        [*_where(observed, reader, each.read_ns), *_filled(each)]
        for reader in observed.readers
        for each in reader.filled
    ]
    parts = []
    if stalls:
        heads = [*_PLACE, ("duration", "number"), ("cause", "text")]
        parts.append(details("Stalls", _listed(len(stalls)), table(heads, stalls)))
    if filled:
        heads = [*_PLACE, ("position", "number"), ("length", "number")]
        heads += [("frames lost", "number"), ("frames too late", "number")]
        heads += [("frames beyond the window", "number")]
        parts.append(details("Filled ranges", _listed(len(filled)), table(heads, filled)))
    return joined(parts)


_PLACE = [("stream", ""), ("at", ""), ("time", "number"), ("clock", "")]


def _listed(count: int) -> str:
    return f"{number(count)} listed"


def _where(observed: Observations, reader: ReaderObservations, time_ns: int) -> list[object]:
    since = f"{(time_ns - observed.start_ns) / NS_PER_S:.3f} s" if observed.start_ns else None
    clock = None if observed.is_virtual else clock_text(time_ns)
    return [reader.traffic, reader.host, since, clock]


def _stall(stall: Stall) -> list[object]:
    return [duration(stall.lasted_ns), causes_text(stall.causes)]


def _filled(filled: FilledRange) -> list[object]:
    discarded = (filled.late_frames, filled.rejected_frames)
    counts = (filled.position, filled.length, filled.lost_frames, *discarded)
    return [number(each) for each in counts]
