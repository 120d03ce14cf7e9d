"""The files of an archive directory: catalog, segment files and mark file.

    checksum          CRC-32 and CRC-32C of frames and catalog entries
    segment_file      names of segment files, and the positions that they contain
    frame_walk        iterates over the frames of a segment file and checks them
    frame_position    whether a frame of a recording begins at a position
    catalog           reads the catalog, which consists of entries (`catalog_entry`)
    catalog_writer    changes the catalog, which can be opened after a kill at any time
    catalog_account   checks that every segment file has a catalog entry
    catalog_salvage   reads the entries of a damaged catalog
    segment_survey    derives a catalog entry from segment files
    catalog_rebuild   rebuilds a damaged catalog from these two sources
    recovery          finds the stop position of a recording whose archive was killed
    mark_file         the running archive, its liveness and its error log
    sync              writes to files, and syncs them

All files have Aeron's format, storage version 3, byte for byte. They are read and written with
system calls instead of mappings, so a full disk causes an error and not a signal. Only the mark
file is mapped, because it is updated often. Its disk blocks are allocated first.
"""
