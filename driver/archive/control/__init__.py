"""Conversations with clients: bytes in, requests out; answers back.

    retained_channel     what is kept of a channel that a client names
    authentication       who may talk, and ask for what
    response_sender      answers into a publication, in order, later if need be
    session_answers      what is said to one client
    control_session      one client's conversation, from its first word to its last
    replay_tokens        for requests that come by another publication
    control_sessions     all of them: whose message is this, and may it be obeyed

Knows nothing of what a request means: whoever owns the sessions is handed what passed.
"""
