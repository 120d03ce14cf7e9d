"""Executes the commands that add or remove publications or request a session id.

Responses are transmitted in Aeron's order: the heartbeat counter of a new client, the publication,
then the images of existing subscriptions. Source: spec 7.3, Aeron 1.53.
"""

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel import admission, publication_parameters
from windtunnel.driver.channel.publication_parameters import TaggedPublication
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    GetNextAvailableSessionId,
    NextAvailableSessionId,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.client_registry import ClientRegistry
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_reader import ChannelReader
from windtunnel.driver.media_driver.conductor.endpoints.response_channels import ResponseChannels
from windtunnel.driver.media_driver.conductor.publications.ipc_publication import IpcPublication
from windtunnel.driver.media_driver.conductor.publications.ipc_publications import IpcPublications
from windtunnel.driver.media_driver.conductor.publications.network_publication import (
    NetworkPublication,
)
from windtunnel.driver.media_driver.conductor.publications.network_publications import (
    NetworkPublications,
)
from windtunnel.driver.media_driver.conductor.publications.publication_log import (
    LocalPublication,
    publication_defaults,
)
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds

NO_CHANNEL_STATUS = -1
"""Status counter id for IPC channels and spies. They have no status counter."""


class PublicationCommands:
    """Handles the commands that add and remove publications, and records which clients hold each
    publication.
    """

    def __init__(
        self,
        resources: DriverResources,
        clients: ClientRegistry,
        channels: ChannelReader,
        network: NetworkPublications,
        ipc: IpcPublications,
        session_ids: SessionIds,
        responses: ResponseChannels,
    ) -> None:
        self._resources = resources
        self._clients = clients
        self._channels = channels
        self._network = network
        self._ipc = ipc
        self._session_ids = session_ids
        self._responses = responses
        self._defaults = publication_defaults(resources.context, resources.system_buffers)
        self._holders: dict[int, tuple[int, LocalPublication]] = {}
        """Maps each add command's registration id to the client and the publication."""

    def add(self, command: AddPublication | AddExclusivePublication) -> None:
        """Execute an add command: create a publication, or share an existing one."""
        parsed = self._channels.parse(command.channel)
        admission.refuse_spy(parsed)
        is_exclusive = isinstance(command, AddExclusivePublication)
        request = PublicationRequest(
            registration_id=command.correlation_id,
            client_id=command.client_id,
            stream_id=command.stream_id,
            channel_text=command.channel,
            parameters=publication_parameters.parse(parsed, self._defaults, self._find_tagged),
            is_exclusive=is_exclusive,
        )
        publication: IpcPublication | NetworkPublication
        if parsed.is_ipc:
            publication = self._ipc.add(request)
            self._responses.on_ipc_publication(publication)
            self._notify_ready(request, publication, NO_CHANNEL_STATUS)
            self._ipc.announce(publication)
        else:
            channel = self._channels.resolve(parsed)
            admission.check_publication(channel)
            self._responses.check(channel, request.parameters)
            publication = self._network.add(request, channel)
            self._notify_ready(request, publication, publication.endpoint.status_counter_id)
            self._network.spies.announce(publication)
            self._responses.on_network_publication(
                channel, request.parameters, publication.session_id
            )

    def _notify_ready(
        self, request: PublicationRequest, publication: LocalPublication, status_id: int
    ) -> None:
        self._holders[request.registration_id] = (request.client_id, publication)
        try:
            self._clients.get_or_add(request.client_id)
        except DriverError:
            self._release(request.registration_id)
            raise
        ready = ExclusivePublicationReady if request.is_exclusive else PublicationReady
        self._resources.clients.transmit(
            ready(
                request.registration_id,
                publication.registration_id,
                publication.session_id,
                publication.stream_id,
                publication.pub_lmt_id,
                status_id,
                str(publication.log_path),
            )
        )

    def _find_tagged(self, tag: int) -> TaggedPublication | None:
        for item in self._network.publications:
            if item.parameters.entity_tag == tag:
                parameters = item.parameters
                return TaggedPublication(
                    item.session_id, parameters.mtu_length, parameters.term_length
                )
        return None

    def remove(self, command: RemovePublication) -> None:
        """Remove a client's publication, and revoke its stream if the command requests it."""
        client_id, publication = self._holders.get(command.registration_id, (None, None))
        if publication is None or client_id != command.client_id:
            raise CommandError(
                f"unknown publication client_id={command.client_id} "
                f"registration_id={command.registration_id}",
                ErrorCode.UNKNOWN_PUBLICATION,
            )
        if command.revoke:
            publication.revoke()
        self._release(command.registration_id)
        self._resources.clients.operation_succeeded(command.correlation_id)

    def _release(self, holder: int) -> None:
        _, publication = self._holders.pop(holder)
        publication.holders.discard(holder)
        if publication.holders:
            return
        if isinstance(publication, IpcPublication):
            self._ipc.release(publication)
        elif isinstance(publication, NetworkPublication):
            self._network.release(publication, self._resources.clock.now_ns())

    def remove_all_of(self, client_id: int) -> None:
        """Remove all publications of a client."""
        for holder in [key for key, (owner, _) in self._holders.items() if owner == client_id]:
            self._release(holder)

    def held_by(self, registration_id: int) -> LocalPublication | None:
        """Return the publication that the add command with this registration id created or shares,
        or None if there is no such publication.
        """
        _, publication = self._holders.get(registration_id, (None, None))
        return publication

    def next_session_id(self, command: GetNextAvailableSessionId) -> None:
        """Respond to the client with the next available session id."""
        publications: list[LocalPublication] = [
            *self._ipc.publications,
            *self._network.publications,
        ]
        in_use = {item.session_id for item in publications if item.stream_id == command.stream_id}
        self._resources.clients.transmit(
            NextAvailableSessionId(command.correlation_id, self._session_ids.next(in_use))
        )
