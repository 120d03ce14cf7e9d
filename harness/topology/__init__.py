"""The topology of a run: its hosts, links and addresses, as pure values.

More than one middlebox, and hosts with several interfaces, are not supported.
"""
