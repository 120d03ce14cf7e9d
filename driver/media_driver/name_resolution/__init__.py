"""Name resolution: from a table, from names that other drivers announce, or by the operating
system.

    client's command -----> NameResolver ----> NameSource: a table, or names from other drivers
    silent endpoint -> Reresolution --^  \\
                                          '--> Lookups: the operating system, in its own thread

All parts run in the conductor's thread, except for the operating system's lookups.
"""
