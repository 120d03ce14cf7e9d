"""What Aeron's own tools show, read from a driver's files: the facts behind `stat` and the others.

    aeron_dir         where a driver's files are; its cnc file as it is at one moment
    counter_filter    which counters were asked for
    streams           the counters of each stream, together
    backlog           how far each end of a stream is behind the other
    log_source        a log buffer, block by block
    driver_state      who the driver is, and whether it lives
    termination       the one thing that is written: a request to end, through the command ring

Files are read, never mapped: a file that shrinks under a mapping would kill the process, and these
files belong to somebody else. Real Aeron's are read as well as ours, by the tables of
`windtunnel.harness.dissect`. Nothing here prints.
"""
