"""One network publication, and how it is created."""

from contextlib import ExitStack
from dataclasses import dataclass

from windtunnel.driver.channel.publication_parameters import RESPONSE_PROTOTYPE, TERM_LENGTH_MIN
from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.publications.publication_limit import NETWORK
from windtunnel.driver.media_driver.conductor.publications.publication_log import (
    LocalPublication,
    activate_limit,
    create_log,
    fill_limit,
    stream_start,
)
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.retired_logs import delete_log
from windtunnel.driver.media_driver.conductor.publications.sender_record import fill_sender_record
from windtunnel.driver.media_driver.conductor.stream_counters import (
    NETWORK_COUNTERS,
    RETRANSMIT_COUNTERS,
)
from windtunnel.driver.media_driver.conductor.unblocking import StallDetector
from windtunnel.driver.media_driver.sender import sender_state


@dataclass(eq=False, kw_only=True)
class NetworkPublication(LocalPublication):
    """A publication that the sender transmits over UDP."""

    endpoint: ChannelEndpoint
    slot: int
    stall_detector: StallDetector
    is_end_of_stream: bool = False

    def sender_position(self) -> int:
        """Return the position up to which the sender has sent the stream."""
        return int(counters.get_acquire(self.values, self.counter_ids[2]))

    def join_position(self) -> int:
        """Return the start position of a spy: the sender position."""
        return self.sender_position()


def create_network_publication(
    resources: DriverResources,
    slots: SlotPool,
    limit_slots: SlotPool,
    request: PublicationRequest,
    session_id: int,
    endpoint: ChannelEndpoint,
) -> NetworkPublication:
    """Create a publication with its log, counters and records, and command the sender to add it."""
    parameters = request.parameters
    if parameters.is_response and parameters.response_correlation_id == RESPONSE_PROTOTYPE:
        # A prototype keeps the channel open. No data is published on it.
        parameters = parameters._replace(term_length=TERM_LENGTH_MIN)
    start = stream_start(resources, parameters)
    parameters = parameters._replace(initial_position=start.configured_initial_position(parameters))
    # On a failure, release the previous allocations.
    with ExitStack() as undo:
        log = create_log(
            resources,
            request.registration_id,
            session_id,
            request.stream_id,
            parameters,
            start,
            endpoint.channel,
            is_exclusive=request.is_exclusive,
        )
        undo.callback(delete_log, resources, log)
        slot = slots.acquire()
        undo.callback(slots.release, slot)
        limit_slot = limit_slots.acquire()
        undo.callback(limit_slots.release, limit_slot)
        further = RETRANSMIT_COUNTERS if parameters.has_retransmit_ranges else ()
        ids = resources.counters.publication(
            undo,
            NETWORK_COUNTERS + further,
            request.identity(session_id),
            start.position,
            is_exclusive=request.is_exclusive,
        )
        identity = (request.registration_id, session_id, request.stream_id)
        fill_sender_record(resources, slot, identity, endpoint, log, parameters, start, ids)
        undo.pop_all()
    record = resources.conductor.limits[limit_slot]
    fill_limit(record, log, parameters, start, NETWORK)
    record["slot"] = slot
    record["pub_pos_id"], record["pub_lmt_id"], record["snd_pos_id"] = ids[:3]
    resources.sender_proxy.offer(sender_state.ADD_PUBLICATION, slot)
    activate_limit(resources, limit_slot)
    return NetworkPublication(
        registration_id=request.registration_id,
        client_id=request.client_id,
        session_id=session_id,
        stream_id=request.stream_id,
        channel_text=request.channel_text,
        parameters=parameters,
        is_exclusive=request.is_exclusive,
        log=log,
        limit_slot=limit_slot,
        record=record,
        holders={request.registration_id},
        counter_ids=ids,
        values=resources.values,
        endpoint=endpoint,
        slot=slot,
        stall_detector=StallDetector(resources.clock.now_ns()),
    )
