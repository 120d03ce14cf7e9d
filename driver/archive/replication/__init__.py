"""Copying recordings from other archives.

    replication_channels    from the channels of a request to those that are really used
    replication_request     what is to be copied
    source_archive          a control session at the other archive, as its client
    inquiry                 asking it one thing after the other
    destination             the recording that a copy goes to
    replication_session     one copy, from its first question to its end
    replications            the requests, and whose turn it is

What comes from the other archive is recorded like any other stream: a recording is extended.
"""
