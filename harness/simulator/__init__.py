"""Simulates a whole run in one process and in virtual time: hosts, their drivers and clients, and
the links between them.

    host a                                                     host b, c, ...
    client --- driver --mailbox--> middlebox --in flight--> mailbox--> driver --- client
               agents <-mailbox<--in flight-- engine <-------mailbox-- agents

The driver's own agents, conductors and clients run unmodified, and so does the middlebox's own
engine. Sockets, the wire, clocks and randomness are simulated. Time advances in steps, and all
randomness derives from one seed, so a run is reproducible bit for bit. Like all code that runs
inside hosts, this package uses the driver; it is never imported but runs as a process
(`python -m windtunnel.harness.simulator`).
"""
