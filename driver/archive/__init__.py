"""The archive: records streams into files and replays them.

    protocol     the messages between an archive and its clients
    storage      the files of an archive directory: catalog, segment files, mark file
    settings     the settings of an archive
    observation  counters and error log
    control      control sessions: requests from clients in, responses out
    recording    records images into segment files
    replay       replays segment files on publications
    operation    the other requests: listings, queries, truncation, segments, migration
    replication  copies recordings from other archives
    conductor    dispatches requests and runs the conductor's duty cycle
    server       assembles, starts and stops an archive
    tool         the command line: runs an archive, inspects and repairs its directory
    client       the client of an archive, ours or Aeron's

An archive is a client of a media driver like any other and shares only memory with it. Its
directory and its messages are those of Aeron 1.53, and each archive can replace the other.
"""
