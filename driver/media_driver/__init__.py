"""The media driver, which consists of the conductor, the sender and the receiver.

The conductor is ordinary Python and owns the files, the sockets and the lifetime of each resource.
The sender and the receiver are compiled kernels that run without the GIL on record arrays. They
receive commands from the conductor and return events through single-producer single-consumer
queues.

    clients <-> conductor --(handoff)--> sender   -> network publications -> UDP
                          --(handoff)--> receiver -> publication images   <- UDP
"""
