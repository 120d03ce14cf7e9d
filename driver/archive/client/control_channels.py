"""The two channels of a control session, made ready before they are opened.

    request  = given + term-length, mtu, sparse + session-id=S
    response = given + term-length, mtu, sparse + session-id=S     one S: clients share an endpoint

A response channel with `control-mode=response` has no session id: the request channel then names
the subscription that it is answered on.
Source: archive-protocol 2.2.
"""

from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.channel.uri import ChannelUri

CONTROL_MODE_RESPONSE = "response"


def is_response_channel(channel: str) -> bool:
    """Whether its publisher is told where to send by whoever subscribes."""
    return uri.parse(channel).get(uri_param.CONTROL_MODE) == CONTROL_MODE_RESPONSE


def with_defaults(channel: str, context: ArchiveContext) -> ChannelUri:
    """The channel with the geometry of control streams, where it has none of its own."""
    made = uri.parse(channel)
    defaults = (
        (uri_param.TERM_LENGTH, context.control_term_buffer_length),
        (uri_param.MTU_LENGTH, context.control_mtu_length),
        (uri_param.SPARSE, context.control_term_buffer_sparse),
    )
    for key, value in defaults:
        if key not in made:
            made = made.with_param(key, value)
    return made


def with_session(channel: ChannelUri, session_id: int) -> ChannelUri:
    """The channel of one session."""
    return channel.with_param(uri_param.SESSION_ID, session_id)


def with_correlation(channel: ChannelUri, subscription_registration_id: int) -> str:
    """The channel whose reader answers to that subscription."""
    unbound = channel.without(uri_param.SESSION_ID)
    return str(unbound.with_param(uri_param.RESPONSE_CORRELATION_ID, subscription_registration_id))
