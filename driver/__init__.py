"""An Aeron-compatible media driver, client and archive, compiled to machine code by numba.

The storeys, from the ground up; a module may use only what lies below it:

    media_driver, archive      the three agents and what they own; recordings
    media, client              sockets; the API a program uses
    command, cnc, logbuffer    messages between client and driver; shared files
    settings                   how a process is told what to be
    wire, channel              frames on UDP; where a stream goes
    base                       memory, machine code, time; knows nothing of Aeron
"""
