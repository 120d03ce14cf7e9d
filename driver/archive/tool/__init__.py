"""The archive's command line, which runs an archive and inspects and repairs archive directories.

    program           assembles the commands, and converts errors to messages and exit codes
    command           the command group; options and arguments that commands share
    run               runs an archive
    inspect           describe, dump, errors, pid, count, capacity, mark-valid, mark-invalid
    repair            verify, checksum, delete-orphans
    recover           rebuilds a lost or damaged catalog
    directory         opens the archive directory, and checks for a running archive
    description       the output of `describe`, as text and as JSON
    frame_dump        the output of `dump`: frames of recordings
    verification      verifies one recording and repairs its catalog entry
    frame_checksums   writes checksums into the frames of a segment file
    orphans           finds segment files outside the positions of their recording
    failure           the error class and the exit codes

The commands correspond to those of Aeron's ArchiveTool. They work on the directory of any Aeron
archive, but do not write to it while its archive is running.
"""
