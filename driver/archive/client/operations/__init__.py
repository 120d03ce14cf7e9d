"""The requests to an archive: functions of a control session that run without blocking.

    recording      start, extend and stop recordings; add recorded publications
    replay         start and stop replays, bounded or not, with a subscription if needed
    listing        list descriptors and subscriptions; request positions
    segments       truncate, purge, detach, delete, attach and migrate; change the channel
    replication    replicate from another archive

All raise ArchiveError with the archive's code, ArchiveTimeoutError, and ArchiveClosedError.
Source: archive-protocol 3.
"""
