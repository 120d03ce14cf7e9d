"""Names to addresses: what a driver knows by itself, what it asks others, and when it asks again.

    client's command ----> NameResolver ----> Names: a table, or what other drivers gossip
    silent endpoint -> Reresolution --^  \\
                                          '--> Lookups: the operating system, off the conductor

The conductor's thread owns all of it; only the operating system is asked on another. Nothing here
knows what an address is wanted for.
"""
