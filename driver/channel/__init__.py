"""Channels: `aeron:` URIs, their addresses, and their parameters for publications and
subscriptions.

All types are immutable values. No socket is opened; names are resolved by a `Resolver` argument.
"""
