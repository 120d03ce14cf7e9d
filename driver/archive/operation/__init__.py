"""What an archive does when it is asked to.

    refusal               why not
    facilities            what every operation needs
    deletions             files that are to go
    recordings            start, extend, stop
    replays               start, bounded or not, stop
    listings              descriptors, subscriptions
    queries               positions, the newest that matches, channels
    removal               truncate, purge
    segments              detach, attach, delete, purge, migrate

An operation is a method that takes the session and its request; it answers by the session, or
raises the Refusal that is the answer. Knows nothing of how requests come.
"""
