"""Log buffers: the terms of a stream in shared memory, and how they are written, read and repaired.

A log buffer is one file: three terms, perhaps some unused bytes, and 4096 bytes of metadata at the
end.

    0             L             2L            3L       length-4096      length
    +-------------+-------------+-------------+---------+---------------+
    | term 0      | term 1      | term 2      | (slack) | metadata      |
    +-------------+-------------+-------------+---------+---------------+

Kernels take the whole file as one array `log`. A term is `(log, base)` with base = index * term
length, the metadata is `(log, meta_at)`. A frame is readable once its length is positive: writers
store the length last, with release, and readers load it first, with acquire.

    frame, position, descriptor     layout
    appender, block                 publications write
    reader, scanner                 subscriptions and senders read
    rebuilder, gap_*                receivers rebuild the stream
    unblocker, cleaner              the conductor unblocks and cleans terms
    log_buffer                      the file

Not supported: mapping terms separately; a log with terms of 1 GiB is one mapping of 3 GiB.
"""
