"""The command line: being an archive; looking into a directory and mending it, whoever's it is.

    failure           what went wrong, in one line with an exit code
    directory         the directory, and whether an archive lives in it
    description       what there is, for people and machines
    frame_dump        the frames of recordings
    verification      does everything fit together, and what can be mended
    frame_checksums   putting checksums into frames
    orphans           files that belong to no recording's positions
    running           being an archive
    command, looking, mending, recovering, program    the command line

The tools do what Aeron's ArchiveTool does, and refuse to write while an archive lives.
"""
