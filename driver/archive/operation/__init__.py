"""The requests about existing recordings; recording and replay have packages of their own.

    listings     lists recording descriptors and subscriptions
    queries      positions, the last matching recording, and changes of the channel
    removal      truncates and purges recordings
    segments     detaches, attaches, deletes and purges segments
    migration    migrates segments to another recording

An operation is a method that takes a control session and a request. It sends the response through
the session, or raises RequestRejected with the error response. Requests are received by `control`
and dispatched by `conductor`.
"""
