"""What an archive and its clients say to each other: SBE messages, declared field by field.

    codes        enumerations, error codes, versions
    layout       how a declaration becomes offsets
    requests     from a client; those about replication are in `replication`
    responses    to a client: answers, descriptors, signals, events
    codec        bytes -> message, message -> bytes

Knows nothing of how messages travel nor of what is done about them.
"""
