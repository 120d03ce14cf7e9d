"""Handles requests to list, query, truncate, purge and migrate recordings, and to manage their
files.

    listings     lists recording descriptors and subscriptions
    queries      positions, the last matching recording, and changes of the channel
    removal      truncates and purges recordings
    segments     detaches, attaches, deletes and purges segments
    migration    migrates segments to another recording

An operation is a method that takes a control session and a request. It sends the response through
the session, or raises RequestRejected for an error response. The package `control` receives
requests, and `conductor` dispatches them.
"""
