"""What an archive shows of itself while it runs: counters and an error log.

    archive_errors      texts into the error log of the mark file, counted
    archive_counters    the counters that there is one of
    cycle_time          how long an agent's turns take
    unforeseen          how a defect is told

Knows nothing of requests, recordings and replays.
"""
