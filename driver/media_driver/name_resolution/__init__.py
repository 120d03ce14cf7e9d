"""Name resolution: from a table, from other drivers, or by the operating system.

    client's command -----> NameResolver ----> NameSource: a table, or names from other drivers
    silent endpoint -> Reresolution --^  \\
                                          '--> Lookups: the operating system, in its own thread

All of it runs in the conductor's thread, except for the lookups of the operating system.
"""
