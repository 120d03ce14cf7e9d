"""Channel URIs, with their addresses and their publication and subscription parameters.

All types are immutable values. No function opens a socket. A `Resolver` argument resolves names.
"""
