"""The files of an archive directory: catalog, segment files and mark file.

    checksum          CRC-32 and CRC-32C of frames and catalog entries
    segment_file      names of segment files; which file holds a position
    frame_walk        walks the frames of a segment file and checks them
    frame_position    whether a frame of a recording begins at a position
    catalog           reads the catalog; `catalog_entry` is one recording in it
    catalog_writer    changes the catalog, so that it can be opened after a kill at any time
    catalog_account   whether every segment file has an entry in the catalog
    catalog_salvage   reads the entries of a damaged catalog
    segment_survey    derives a catalog entry from segment files
    catalog_rebuild   rebuilds a damaged catalog from the two
    recovery          finds the stop position of a recording whose archive was killed
    mark_file         the owner of the directory, its liveness and its error log
    sync              writes to files, and syncs them

All files have Aeron's format, storage version 3, byte for byte. They are read and written with
system calls, not mapped, so that a full disk is an error and not a signal. Only the mark file is
mapped, because it is updated often; its blocks are allocated first.
"""
