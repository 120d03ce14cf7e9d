"""The middlebox between hosts: fault rules, the engine that applies them, and the relay process.

    rules, rule_compiler       the case's faults as a table
    engine/prf                 the keyed draw: same frame, same decision, whatever the timing
    engine/replayed_decisions  in a replay: the recorded decisions, in place of the rules
    engine/sessions            a frame's position, and how often it has been transmitted
    engine/held_frames         frames that are held, by due time
    engine/engine              datagram in, datagrams out, accounts: no clock, no socket
    engine/packet              headers of outgoing datagrams: lengths, checksums, MAC addresses
    impairment                 loss, delay, rate limit, duplication and corruption of whole packets
    relay/libc, relay/port     the interface to the kernel: batched calls; sockets on an interface
    relay/neighbour            the MAC address of the host behind an interface
    relay/report               writes accounts and decisions to the run folder
    relay/relay                the loop between the interfaces; __main__ is the process around it

The simulator uses the same engine as the relay. Not supported are IP fragments, and packets that a
network card would segment into several datagrams. The relay counts both and reports them when it
ends.
"""
