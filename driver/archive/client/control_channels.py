"""Adds parameters to the request and response channels of a control session.

    request  = given + term-length, mtu, sparse + session-id=S
    response = given + term-length, mtu, sparse + session-id=S     one S: clients share an endpoint

A response channel with `control-mode=response` gets no session id. Instead, the request channel
contains the correlation id of the subscription to which responses are sent.
Source: archive-protocol 2.2.
"""

from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.channel.uri import ChannelUri

CONTROL_MODE_RESPONSE = "response"


def is_response_channel(channel: str) -> bool:
    """Return whether a channel has `control-mode=response`."""
    return uri.parse(channel).get(uri_param.CONTROL_MODE) == CONTROL_MODE_RESPONSE


def with_defaults(channel: str, context: ArchiveContext) -> ChannelUri:
    """Return a channel with default values for the control stream parameters that it does not
    specify.
    """
    result = uri.parse(channel)
    defaults = (
        (uri_param.TERM_LENGTH, context.control_term_buffer_length),
        (uri_param.MTU_LENGTH, context.control_mtu_length),
        (uri_param.SPARSE, context.control_term_buffer_sparse),
    )
    for key, value in defaults:
        if key not in result:
            result = result.with_param(key, value)
    return result


def with_session(channel: ChannelUri, session_id: int) -> ChannelUri:
    """Return a copy of the channel with the given session id."""
    return channel.with_param(uri_param.SESSION_ID, session_id)


def with_correlation(channel: ChannelUri, subscription_registration_id: int) -> str:
    """Return a request channel whose responses are sent to the given subscription."""
    unbound = channel.without(uri_param.SESSION_ID)
    return str(unbound.with_param(uri_param.RESPONSE_CORRELATION_ID, subscription_registration_id))
