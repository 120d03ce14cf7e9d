"""The SBE messages that an archive and its clients exchange, each declared field by field.

    codes        enumerations, error codes, versions
    layout       derives the offsets of fields from a message's declaration
    requests     messages from a client; those for replication are in `replication`
    responses    messages to a client: responses, descriptors, signals, events
    codec        encodes and decodes messages

This package is independent of how messages are transported and handled.
"""
