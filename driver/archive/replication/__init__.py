"""Replication, which copies recordings from other archives.

    replications            starts and stops replications
    replication_session     one replication, from connecting to the source to its end
    destination             the recording that is created or extended
    replay_recording        the recording of the replay, which extends the destination
    request_publication     the publication on which a replay to a response channel is requested
    pending_request         requests to the source archive, one at a time, without blocking
    source_archive          a control session with the source archive
    replication_channels    derives the channels of a replication from its request
    replication_request     the parameters of a replication

The source archive replays the recording, and this archive records the replay as an extension of a
recording.
"""
