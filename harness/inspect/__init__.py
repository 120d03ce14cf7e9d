"""Readers of a driver's files, for tools such as `windtunnel stat`, modelled on Aeron's own tools.

    aeron_dir         location of a driver's files; a snapshot of its cnc file
    counter_filter    selection of counters by pattern
    streams           counters grouped by stream
    backlog           backlog of each end of a stream
    log_source        access to a log buffer, block by block
    driver_state      process, version and liveness of a driver
    termination       termination request through the command ring: the only write access

Files are read, not mapped: if the driver truncated a mapped file, SIGBUS would kill this
process. The parsers of `windtunnel.harness.dissect` read the files of Aeron's and Windtunnel's
drivers. Nothing in this package prints.
"""
