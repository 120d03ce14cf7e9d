"""The control protocol: requests from clients come in, responses and signals go out.

    control_sessions     receives messages, finds their session, authorises requests
    control_session      one client's session, from its connect request to its end
    session_context      what a control session needs of its archive
    response_writer      the messages that are sent to one client
    response_sender      sends them in order, later if the publication is back pressured
    authentication       which clients may connect, and which requests they may make
    replay_tokens        tokens for replay requests from another publication
    request_rejected     the error for a rejected request
    archive_resources    what every operation of an archive needs
    retained_channel     the stored form of a client's channel

Requests are not interpreted here: authorised ones are passed to a handler.
"""
