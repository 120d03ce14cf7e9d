"""The media driver: conductor, sender and receiver, and the streams that they own.

The conductor is ordinary Python: it owns files, sockets and lifetimes. Sender and receiver are
kernels that run their turns without the GIL on record arrays; work reaches them, and comes back,
through single-producer queues.

    clients <-> conductor --(handoff)--> sender   -> network publications -> UDP
                          --(handoff)--> receiver -> publication images   <- UDP
"""
