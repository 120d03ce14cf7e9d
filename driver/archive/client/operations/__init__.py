"""What an archive can be asked for, each a function of a session that works in turns.

    recording      start, extend, stop; publications that are recorded from the beginning
    replay         start, bounded or not, with a subscription for it; stop
    listing        descriptors and subscriptions, one by one to a handler; positions
    segments       truncate, purge, detach, delete, attach, migrate; another channel
    replication    from another archive

All raise ArchiveError with the archive's code, ArchiveTimeoutError, and ArchiveClosedError.
Source: archive-protocol 3.
"""
