"""Non-blocking functions that send requests to an archive over a control session.

    recording      start, extend and stop recordings; add recorded publications
    replay         start and stop replays, bounded or not, with a subscription if needed
    listing        list descriptors and subscriptions; request positions
    segments       truncate, purge, detach, delete, attach and migrate; change the channel
    replication    replicate from another archive

All functions raise ArchiveError with the archive's error code, ArchiveTimeoutError, and
ArchiveClosedError.
Source: archive-protocol 3.
"""
