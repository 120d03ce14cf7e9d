"""One IPC publication, and how it is created."""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.conductor.publications.publication_limit import IPC
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
from windtunnel.driver.media_driver.conductor.stream_counters import IPC_COUNTERS
from windtunnel.driver.media_driver.conductor.unblocking import StallDetector


@dataclass(eq=False, kw_only=True)
class IpcPublication(LocalPublication):
    """A publication that subscribers read through shared memory."""

    stall_detector: StallDetector
    positions: np.ndarray
    cool_down_until_ns: int | None = None
    """End of the cool-down after a subscriber rejected the publication, or None."""

    @property
    def consumer_position(self) -> int:
        """The position of the publication's fastest subscriber."""
        return int(self.record["consumer_position"])

    def join_position(self) -> int:
        """Return a new subscriber's start position: the position of the slowest subscriber."""
        lowest, _, _ = subscriber_positions.bounds(
            self.positions, int(self.record["first_subscriber"]), self.values
        )
        return min(self.consumer_position, int(lowest))


def create_ipc_publication(
    resources: DriverResources, limit_slots: SlotPool, request: PublicationRequest, session_id: int
) -> IpcPublication:
    """Create a publication with its log, counters and limit record."""
    start = stream_start(resources, request.parameters)
    parameters = request.parameters._replace(
        initial_position=start.configured_initial_position(request.parameters)
    )
    # On a failure, release the previous allocations.
    with ExitStack() as undo:
        log = create_log(
            resources,
            request.registration_id,
            session_id,
            request.stream_id,
            parameters,
            start,
            None,
            is_exclusive=request.is_exclusive,
        )
        undo.callback(delete_log, resources, log)
        limit_slot = limit_slots.acquire()
        undo.callback(limit_slots.release, limit_slot)
        ids = resources.counters.publication(
            undo,
            IPC_COUNTERS,
            request.identity(session_id),
            start.position,
            is_exclusive=request.is_exclusive,
        )
        undo.pop_all()
    record = resources.conductor.limits[limit_slot]
    fill_limit(record, log, parameters, start, IPC)
    record["pub_pos_id"], record["pub_lmt_id"] = ids
    activate_limit(resources, limit_slot)
    return IpcPublication(
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
        positions=resources.conductor.subscribers,
        stall_detector=StallDetector(resources.clock.now_ns()),
    )
