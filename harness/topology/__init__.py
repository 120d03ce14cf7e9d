"""The topology of a run, as immutable values: hosts, links and addresses.

More than one middlebox, and hosts with several interfaces, are not supported.
"""
