"""Links request streams to response streams, for channels with control-mode=response.

    requester                                        server
    subscription R, control-mode=response            image of the request, correlation id I
    publication, response-correlation-id=R  SETUP->  publication, control-mode=response,
                                                                  response-correlation-id=I
    R gets the session id  <--RSP_SETUP with this publication's session id, until connected

Over IPC, no frames are sent. The session id is set as soon as the response publication is added.
Source: spec 4.10, Aeron 1.53.
"""

import numpy as np

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.publication_parameters import (
    NULL_CORRELATION_ID,
    RESPONSE_PROTOTYPE,
    PublicationParameters,
)
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.receive_channel_endpoints import (
    ReceiveChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.images.conductor_image import PublicationImage
from windtunnel.driver.media_driver.conductor.images.publication_images import PublicationImages
from windtunnel.driver.media_driver.conductor.images.subscriptions import SubscriptionLinks
from windtunnel.driver.media_driver.conductor.publications.ipc_publication import IpcPublication
from windtunnel.driver.media_driver.conductor.publications.ipc_publications import IpcPublications
from windtunnel.driver.media_driver.receiver import receiver_state

NO_SESSION = 0
HAS_SESSION = 1


class ResponseChannels:
    """Links request streams to their response streams."""

    def __init__(
        self,
        resources: DriverResources,
        links: SubscriptionLinks,
        endpoints: ReceiveChannelEndpoints,
        images: PublicationImages,
        ipc: IpcPublications,
    ) -> None:
        self._resources = resources
        self._links = links
        self._endpoints = endpoints
        self._images = images
        self._ipc = ipc

    def check(self, channel: UdpChannel, parameters: PublicationParameters) -> None:
        """Raise an error if a publication's response-correlation-id does not identify an existing
        image or subscription.
        """
        correlation_id = parameters.response_correlation_id
        if channel.control_mode is ControlMode.RESPONSE:
            if correlation_id == NULL_CORRELATION_ID:
                raise ConfigurationError(
                    f"channel '{channel.uri}': control-mode=response was specified, but no "
                    "response-correlation-id set"
                )
            if correlation_id != RESPONSE_PROTOTYPE:
                self._requesting_image(correlation_id)
        elif correlation_id != NULL_CORRELATION_ID:
            subscription = self._links.subscriptions.get(correlation_id)
            if subscription is None or subscription.endpoint is None:
                raise ConfigurationError(
                    "unable to find response subscription for "
                    f"response-correlation-id={correlation_id}"
                )

    def _requesting_image(self, correlation_id: int) -> PublicationImage:
        for image in self._images.images:
            if image.registration_id == correlation_id:
                if image.requests_response:
                    return image
                raise ConfigurationError(
                    f"image.correlationId={correlation_id} did not request a response channel"
                )
        raise ConfigurationError(f"image.correlationId={correlation_id} not found")

    def on_network_publication(
        self, channel: UdpChannel, parameters: PublicationParameters, session_id: int
    ) -> None:
        """Start sending the session id of a new response publication to the requester."""
        correlation_id = parameters.response_correlation_id
        is_response = channel.control_mode is ControlMode.RESPONSE
        if is_response and correlation_id != RESPONSE_PROTOTYPE:
            image = self._requesting_image(correlation_id)
            self._set_session(image, HAS_SESSION, session_id)

    def _set_session(self, image: PublicationImage, has_session: int, session_id: int) -> None:
        self._resources.receiver_proxy.offer(
            receiver_state.SET_RESPONSE_SESSION, image.slot, has_session, session_id
        )

    def on_ipc_publication(self, publication: IpcPublication) -> None:
        """Set the session id of the requester's subscription to the session id of a new IPC
        response publication.
        """
        correlation_id = publication.parameters.response_correlation_id
        for request in self._ipc.publications:
            if request.registration_id != correlation_id:
                continue
            response_correlation_id = request.parameters.response_correlation_id
            subscription = self._links.subscriptions.get(response_correlation_id)
            if subscription is not None and subscription.uri.is_ipc:
                subscription.session_id = publication.session_id

    def on_response_setup(self, record: np.ndarray) -> None:
        """Set the session id of the requester's response subscription to the session id in a
        received RSP_SETUP frame.
        """
        correlation_id, session_id = int(record[2]), int(record[3])
        subscription = self._links.subscriptions.get(correlation_id)
        if subscription is None or subscription.endpoint is None:
            return
        endpoint, stream_id = subscription.endpoint, subscription.stream_id
        if subscription.session_id is None:
            had_all_sessions = not subscription.is_response
            subscription.session_id, subscription.is_response = session_id, False
            self._endpoints.add_interest(endpoint, stream_id, session_id)
            if had_all_sessions:
                # A plain subscription is used for responses: drop its interest in all sessions.
                self._endpoints.remove_interest(endpoint, stream_id, None)
        else:
            self._resources.receiver_proxy.offer(
                receiver_state.REQUEST_SETUP, endpoint.slot, stream_id, subscription.session_id
            )

    def on_response_connected(self, record: np.ndarray) -> None:
        """Stop sending a response publication's session id when the publication has a receiver."""
        correlation_id = int(record[2])
        for image in self._images.images:
            if image.registration_id == correlation_id:
                self._set_session(image, NO_SESSION, 0)
