"""The positions of a published stream that are in no recording of an archive.

    published   | frame | frame | frame | frame | frame | frame |
    recordings  | frame | frame |               | frame | frame |     two frames are in no recording

A check permits them after a kill of the archive, and if its disk is full. Even so, a passing
verdict names them, and `unrecorded_at_most` in `expect` limits their bytes.
"""

from collections.abc import Iterable, Iterator

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.limit import Limit

AT_MOST = "unrecorded_at_most"
"""The argument of a check that limits the bytes that are in no recording."""
BYTES = "unrecorded_bytes"
"""Name of a finding's fact: bytes of the stream, headers included, that are in no recording."""

Ranges = list[tuple[int, int]]


def unrecorded_ranges(recorded: Iterable[tuple[int, int]], begin: int, end: int) -> Ranges:
    """Return the ranges between two positions that no recorded range covers, in order."""
    found, reached = [], begin
    for start, stop in sorted(recorded):
        if min(start, end) > reached:
            found.append((reached, min(start, end)))
        reached = max(reached, stop)
    if end > reached:
        found.append((reached, end))
    return found


def total_bytes(ranges: Ranges) -> int:
    """Return the total length of some ranges."""
    return sum(end - begin for begin, end in ranges)


def unrecorded_text(ranges: Ranges) -> str:
    """Return a clause that names ranges without a recording, of which there is at least one."""
    begin, end = ranges[0]
    more = f" and {len(ranges) - 1} more" if len(ranges) > 1 else ""
    unrecorded = f"{total_bytes(ranges):,} bytes are in no recording"
    return f"{unrecorded}: positions {begin:,} to {end:,}{more}"


def unrecorded_notes(evidence: Evidence, case: Case) -> Iterator[str]:
    """Yield one note for each archive without a part of a stream, for a verdict's first line.

    The notes depend on the catalog and the publisher's report alone, not on the checks of the
    scenario.
    """
    for traffic in case.traffic:
        for host in traffic.archived if traffic.recorded else ():
            flow = traffic.at(traffic.recorded)
            kept, publisher = evidence.archive(host), evidence.publisher(flow)
            if isinstance(kept, Missing) or isinstance(publisher, Missing):
                continue
            own = [each for each in kept.catalog.recordings if each.stream_id == flow.stream_id]
            if not own or any(each.stop_position < 0 for each in own):
                continue
            recorded = ((each.start_position, each.stop_position) for each in own)
            begin, end = publisher.start_position, publisher.end_position
            if ranges := unrecorded_ranges(recorded, begin, end):
                yield f"{traffic.id} in the archive of {host}: {unrecorded_text(ranges)}"


LIMIT = Limit(AT_MOST, BYTES, lambda facts: f"{facts[BYTES]:,} bytes are in no recording")
