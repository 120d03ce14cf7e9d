"""The command-and-control file (CnC), the shared memory of a driver and its clients.

    cnc_header      lengths of the sections
    cnc_file        the file itself, and checks before it is used
    ring_buffer     commands to the driver
    broadcast       responses to all clients
    counters        64-bit values with labels (reader, manager)
    error_log       distinct errors with counts

These modules handle bytes and records. The commands are defined in `driver.command`. Every process
that maps the file can write any bytes to it, so each length is checked before it is used.
"""
