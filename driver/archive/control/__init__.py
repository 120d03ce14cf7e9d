"""The control protocol: receives requests from clients, and sends responses and signals.

    control_sessions     receives messages, finds their session, authorises requests
    control_session      one client's session, from its connect request to its end
    session_counter      the counter of one session, by which other programs find it
    session_context      the shared objects that a control session uses
    response_writer      the messages that are sent to one client
    response_sender      sends messages in order, and queues them under back pressure
    authentication       which clients may connect, and which requests they may make
    replay_tokens        tokens for replay requests from another publication
    request_rejected     the error for a rejected request
    archive_resources    the shared objects that all operations use
    retained_channel     the stored form of a client's channel

This package does not interpret requests. It passes authorised requests to a handler.
"""
