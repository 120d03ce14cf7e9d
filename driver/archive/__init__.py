"""The archive: records streams into files and replays them.

    protocol     the messages between an archive and its clients
    storage      the files of an archive directory: catalog, segment files, mark file
    settings     the settings of an archive
    observation  counters and error log
    control      control sessions: requests from clients in, responses out
    recording    records images into segment files
    replay       replays segment files on publications
    operation    other requests: listings, queries, truncation, segments, migration
    replication  copies recordings from other archives
    conductor    dispatches requests and runs the conductor's duty cycle
    server       assembles, starts and stops an archive
    tool         the command line: runs an archive, inspects and repairs its directory
    client       the client for this archive and for Aeron's archive

An archive is an ordinary client of a media driver and communicates with it only through shared
memory. Its directory and its messages have the format of Aeron 1.53, so it can replace Aeron's
archive and vice versa.
"""
