"""The counters and the error log through which a running archive can be observed.

    archive_errors      the error log in the mark file
    archive_counters    the counters of the archive as a whole
    cycle_time          how long the duty cycles of an agent take
    error_text          the text of an error for the error log

This package is independent of requests, recordings and replays.
"""
