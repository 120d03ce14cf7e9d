"""Limits the number of streams that an analysis follows, and reports those that it leaves out.

    totals --> the STREAMS_MAX streams with the most frames --> geometry, walks, joins
                 `-> the others: a problem of the analysis

Each datagram of a capture may claim a separate stream, and each stream takes memory until the end
of the capture. Both engines apply the limit to the same totals, so they leave out the same streams.
"""

import pyarrow as pa

STREAMS_MAX = 16_384
"""The maximum number of streams. A stream takes about 20 kB at each vantage point."""


def limit_streams(totals: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the totals of the streams with the most frames, and a problem if any were left out.

    Of streams with equally many frames, those with the lowest ids are kept.
    """
    by_stream = totals.group_by(["session_id", "stream_id"]).aggregate([("frames", "sum")])
    count = by_stream.num_rows
    if count <= STREAMS_MAX:
        return totals, ()
    ordered = by_stream.sort_by(
        [("frames_sum", "descending"), ("session_id", "ascending"), ("stream_id", "ascending")]
    )
    kept, others = ordered.slice(0, STREAMS_MAX), ordered.slice(STREAMS_MAX)
    keys = ["session_id", "stream_id"]
    of_kept = totals.join(kept.select(keys), keys=keys, join_type="left semi")
    frames = sum(others["frames_sum"].to_pylist())
    problem = (
        f"{count:,} streams were found, expected at most {STREAMS_MAX:,}: the "
        f"{count - STREAMS_MAX:,} with the fewest frames, {frames:,} frames in all, were left out; "
        "analyse fewer files at a time, or only the UDP ports of interest"
    )
    return of_kept, (problem,)
