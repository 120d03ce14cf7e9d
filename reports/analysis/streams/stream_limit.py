"""Limit on the number of streams in an analysis. Streams that are left out are reported.

    totals --> the STREAMS_MAX streams with the most frames --> geometry, walks, joins
                 `-> the others: a problem of the analysis

Each datagram of a capture may claim a separate stream, and each stream takes memory until the end
of the capture. Both engines apply the limit to the same totals, so they leave out the same streams.
"""

import pyarrow as pa

STREAMS_MAX = 16_384
"""Maximum number of streams in an analysis. Each takes about 20 kB per vantage point."""


def limit_streams(totals: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the totals of the streams with the most frames, and a message if other streams were
    left out.

    Among streams with equally many frames, those with the lowest ids are kept.
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
        f"found {count:,} streams, expected at most {STREAMS_MAX:,}: the {count - STREAMS_MAX:,} "
        f"streams with the fewest frames were left out, with {frames:,} frames in total; "
        "analyse fewer files at a time, or only the UDP ports of interest"
    )
    return of_kept, (problem,)
