"""The archive: recordings of streams, kept in files and sent again.

    protocol    what archive and clients say to each other
    storage     catalog, segment files, mark file: what lies in an archive's directory
    recording   from an image into segment files
    replay      from segment files to a publication
    settings    what an archive was told
    observation what it shows of itself
    control     conversations with clients: bytes in, requests out, answers back
    operation   what it does when it is asked to
    replication copying recordings from other archives
    conductor   which request is whose, and everybody's turns
    running     an archive as a whole
    tool        the command line: be an archive, look into its directory, mend it

An archive is a client of a media driver like any other: it never meets the driver but in shared
memory. Its directory and its messages are those of Aeron 1.53; either can be exchanged for the
other's.
"""
