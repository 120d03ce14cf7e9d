"""What lies in an archive's directory: a catalog, segment files, a mark file.

    checksum        CRC-32 and CRC-32C of frames and catalog entries
    segment_file    names of segment files, and which position lies in which
    frame_walk      from frame to frame through a segment file, checking on the way
    catalog         which recordings there are, an entry each (`catalog_entry`)
    catalog_writer  changing that, so that a kill at any moment leaves a catalog that opens
    catalog_account whether it accounts for the segment files beside it
    catalog_salvage, segment_survey, catalog_rebuild
                    rebuilding a damaged one from what is left of it and from the segment files
    recovery        where a recording stopped whose archive was killed
    mark_file       who owns the directory, and whether he lives
    sync            bytes into files, and how far down they are pushed

All of it is Aeron's own format, storage version 3, byte for byte. Files are read and written by
system calls, not mapped, so that a full disk is an error and not a signal; only the mark file,
which is written as often as a clock ticks, is mapped, and its blocks are allocated first.
"""
