"""Hosts, their drivers and clients, and the links between them, in one process on virtual time.

    host a                                                     host b, c, ...
    client --- driver --mailbox--> middlebox --flight--> mailbox--> driver --- client
               agents <-mailbox<--flight-- engine <-------mailbox-- agents

The drivers' own agents, conductors and clients are at work, and the middlebox's own engine; what is
stood in for are sockets, the wire, clocks and chance. Nothing moves but by steps, and all chance
descends from one seed, so a run can be made again bit by bit. As a room that runs inside hosts it
uses the driver; nobody imports it, it runs as a process (`python -m windtunnel.harness.simulator`).
"""
