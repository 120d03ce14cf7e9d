"""What disturbs a link: the fault rules, the engine that applies them, the relay around it.

    prf          the keyed draw: same frame, same fate, whatever the timing
    rules        the case's faults as a table
    fates        in a replay: what another run did to which frame, in place of rules
    sessions     what a frame's position is, and how often it has passed
    waiting      frames held back, by due time
    engine       datagram in, datagrams out, decisions and accounts: pure, no clock, no socket
    report       accounts and decisions on their way to the run folder
    packet       headers of the datagrams that leave: lengths, checksums, MAC addresses
    libc, port   the kernel's doors: batched calls; sockets on an interface
    neighbour    the MAC address of the host behind an interface
    relay        the loop between two interfaces; __main__ is the process around it

The engine serves the simulator as it serves the relay. Not covered: IP fragments, and packets that
a network card would cut into several datagrams; the relay counts them and complains at its end.
"""
