"""The command-and-control file: how a driver and its clients share memory, section by section.

    cnc_header      how long each section is
    cnc_file        the file itself, and who may trust it
    ring_buffer     commands on their way to the driver
    broadcast       responses on their way to every client
    counters        what everybody is doing, as 64-bit values with labels (reader, manager)
    error_log       what went wrong, once each, with a count

Knows bytes and records, not what a command means (that is `driver.command`). Every process that
maps the file can write anything anywhere, so a length read from it is checked before it is used.
"""
