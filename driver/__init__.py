"""An Aeron-compatible media driver, client and archive, compiled to machine code by numba.

Layers, from top to bottom; a module may import only from layers below its own:

    media_driver, archive      the three agents and their state; recordings
    media, client              sockets; the client API
    command, cnc, logbuffer    messages between client and driver; shared files
    settings                   settings of a process
    wire, channel              UDP frames; channel URIs and addresses
    base                       memory, machine code, time; independent of Aeron
"""
