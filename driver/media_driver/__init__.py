"""The media driver: conductor, sender and receiver.

The conductor is ordinary Python and owns files, sockets and lifetimes. Sender and receiver are
kernels that run without the GIL on record arrays. They receive commands from the conductor and
return events through single-producer single-consumer queues.

    clients <-> conductor --(handoff)--> sender   -> network publications -> UDP
                          --(handoff)--> receiver -> publication images   <- UDP
"""
