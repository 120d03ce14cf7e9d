"""Terms in shared memory: how a stream lies in a file, and every way to write, read and repair it.

A log buffer is one file: three terms, perhaps some slack, and 4096 bytes of metadata at the very
end.

    0             L             2L            3L       length-4096      length
    +-------------+-------------+-------------+---------+---------------+
    | term 0      | term 1      | term 2      | (slack) | metadata      |
    +-------------+-------------+-------------+---------+---------------+

Kernels take the whole file as one array `log`; a term is `(log, base)` with base = index * term
length, the metadata is `(log, meta_at)`. A frame exists once its length is positive: writers store
that last, with release, and readers load it first, with acquire.

    frame, position, descriptor     where things are
    appender                        publications write
    reader, scanner                 subscriptions and senders read
    rebuilder, gap_*                receivers put the stream together again
    unblocker, cleaner              the conductor repairs and reuses
    log_buffer                      the file

Not covered: terms mapped one by one; a log of 1 GiB terms is one mapping of 3 GiB.
"""
