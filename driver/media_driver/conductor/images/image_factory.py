"""Creates the image for a SETUP frame, with its log, its counters and its record.

Each allocation is registered in an ExitStack, which releases all of them on a failure. Source:
spec 3.2, Aeron 1.53 (the C driver where the two differ).
"""

from contextlib import ExitStack

import numpy as np

from windtunnel.driver.channel import subscription_parameters
from windtunnel.driver.channel.subscription_parameters import SubscriptionParameters
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer, usable_bytes
from windtunnel.driver.logbuffer.parameters import LogParameters
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.images import image_record
from windtunnel.driver.media_driver.conductor.images.conductor_image import PublicationImage
from windtunnel.driver.media_driver.conductor.images.image_record import fill_image_record
from windtunnel.driver.media_driver.conductor.images.subscriptions import Subscription
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredTimeouts
from windtunnel.driver.media_driver.conductor.publications.retired_logs import delete_log
from windtunnel.driver.media_driver.conductor.storage import check_space, unreserved_bytes
from windtunnel.driver.media_driver.context import SETTINGS
from windtunnel.driver.media_driver.image import (
    congestion_control,
    cubic,
    loss_report,
    written_pages,
)
from windtunnel.driver.media_driver.receiver import dispatcher
from windtunnel.driver.wire import frame_type

COUNTERS_PER_IMAGE = 9
"""Maximum number of counters of an image, not counting its subscribers' counters."""


class ImageFactory:
    """Creates images and allocates their slots, logs and counters."""

    def __init__(self, resources: DriverResources) -> None:
        self._resources = resources
        self.slots = SlotPool(resources.receiver.images.size, "images")

    def make(
        self,
        undo: ExitStack,
        event: np.ndarray,
        endpoint: ChannelEndpoint,
        subscriptions: list[Subscription],
        now_ns: int,
    ) -> PublicationImage:
        """Create an image that is not yet linked to subscriptions or passed to the agents."""
        resources = self._resources
        oldest = min(subscriptions, key=lambda item: item.registration_id)
        parameters = self._parameters(oldest, endpoint)
        session_id, stream_id = int(event[dispatcher.SESSION_ID]), oldest.stream_id
        self._check_setup(event, parameters)
        correlation_id = resources.next_correlation_id()
        is_group = parameters.is_group(
            is_multicast=endpoint.channel.is_multicast
            or bool(int(event[dispatcher.SETUP_FLAGS]) & frame_type.GROUP)
        )
        slot = self.slots.acquire()
        undo.callback(self.slots.release, slot)
        resources.counters.require_free(COUNTERS_PER_IMAGE)
        log = self._create_log(event, correlation_id, parameters, endpoint, is_group=is_group)
        undo.callback(delete_log, resources, log)
        record = resources.receiver.images[slot]
        start = image_record.start_position(event, log)
        fill_image_record(record, log, endpoint.slot, parameters, resources.context, start, now_ns)
        pages = written_pages.make_pages(log.term_length)
        record["pages_address"], record["pages_length"] = pages.ctypes.data, pages.size
        channel_text, source = str(endpoint.channel.uri), image_record.source_text(event)
        entry = loss_report.make_entry(session_id, stream_id, channel_text, source)
        record["loss_entry_address"], record["loss_entry_length"] = entry.ctypes.data, entry.size
        record["correlation_id"] = correlation_id
        record["session_id"], record["stream_id"] = session_id, stream_id
        record["is_group"] = int(is_group)
        image_record.fill_feedback(
            record,
            parameters,
            resources.context,
            resources.random.getrandbits(32),
            is_group=is_group,
        )
        ids = self._init_congestion_control(undo, record, parameters, endpoint, now_ns)
        ids += self._allocate_positions(undo, record, oldest, start)
        image_record.fill_connection(resources.receiver, slot, event, now_ns)
        return PublicationImage(
            registration_id=correlation_id,
            session_id=session_id,
            stream_id=stream_id,
            log=log,
            slot=slot,
            record=record,
            endpoint=endpoint,
            source_identity=source,
            channel_text=channel_text,
            counter_ids=ids,
            values=resources.values,
            positions=resources.conductor.subscribers,
            untethered_timeouts=UntetheredTimeouts(
                parameters.untethered_window_limit_timeout_ns,
                parameters.untethered_linger_timeout_ns,
                parameters.untethered_resting_timeout_ns,
            ),
            requests_response=bool(
                int(event[dispatcher.SETUP_FLAGS]) & frame_type.SEND_RESPONSE_SETUP
            ),
            pages=pages,
            loss_entry=entry,
        )

    def _parameters(
        self, oldest: Subscription, endpoint: ChannelEndpoint
    ) -> SubscriptionParameters:
        defaults = self._resources.subscription_defaults()
        opened = subscription_parameters.parse(endpoint.channel.uri, defaults)
        return oldest.parameters.on_endpoint(opened)

    def _check_setup(self, event: np.ndarray, parameters: SubscriptionParameters) -> None:
        """Refuse a SETUP frame whose term length exceeds the driver's limit, or whose MTU exceeds
        the subscription's initial window.
        """
        stream = (
            f"streamId={int(event[dispatcher.STREAM_ID])} "
            f"sessionId={int(event[dispatcher.SESSION_ID])}"
        )
        term_length, mtu_length = (
            int(event[dispatcher.TERM_LENGTH]),
            int(event[dispatcher.MTU_LENGTH]),
        )
        term_length_max = self._resources.context.image_term_length_max
        if term_length > term_length_max:
            raise CommandError(
                f"termLength={term_length} > {SETTINGS['image_term_length_max'].variable}="
                f"{term_length_max} {stream}"
            )
        if parameters.initial_window_length < mtu_length:
            raise CommandError(
                f"mtuLength={mtu_length} > initialWindowLength="
                f"{parameters.initial_window_length} {stream}"
            )

    def _create_log(
        self,
        event: np.ndarray,
        correlation_id: int,
        parameters: SubscriptionParameters,
        endpoint: ChannelEndpoint,
        *,
        is_group: bool,
    ) -> LogBuffer:
        context = self._resources.context
        buffers = self._resources.system_buffers
        log_length = int(
            descriptor.log_length(int(event[dispatcher.TERM_LENGTH]), context.file_page_size)
        )
        mapped = int(counters.get(self._resources.values, system_counters.BYTES_CURRENTLY_MAPPED))
        check_space(
            context,
            log_length,
            self._resources.record_error,
            lambda folder: unreserved_bytes(folder, usable_bytes(folder), mapped, log_length),
        )
        log = LogBuffer.create(
            self._resources.image_file(correlation_id),
            LogParameters(
                type=descriptor.IMAGE,
                correlation_id=correlation_id,
                session_id=int(event[dispatcher.SESSION_ID]),
                stream_id=int(event[dispatcher.STREAM_ID]),
                initial_term_id=int(event[dispatcher.INITIAL_TERM_ID]),
                term_length=int(event[dispatcher.TERM_LENGTH]),
                mtu_length=int(event[dispatcher.MTU_LENGTH]),
                page_size=context.file_page_size,
                receiver_window_length=parameters.initial_window_length,
                socket_sndbuf_length=endpoint.channel.socket_sndbuf_length or 0,
                # As in the C driver, leave the system's maximum unset.
                os_default_socket_sndbuf_length=buffers.sndbuf_length,
                socket_rcvbuf_length=endpoint.channel.socket_rcvbuf_length or 0,
                os_default_socket_rcvbuf_length=buffers.rcvbuf_length,
                untethered_window_limit_timeout_ns=parameters.untethered_window_limit_timeout_ns,
                untethered_resting_timeout_ns=parameters.untethered_resting_timeout_ns,
                untethered_linger_timeout_ns=parameters.untethered_linger_timeout_ns,
                group=is_group,
                is_response=parameters.is_response,
                rejoin=parameters.is_rejoin,
                reliable=parameters.is_reliable,
                sparse=parameters.is_sparse,
                tether=parameters.is_tethered,
            ),
            sparse=parameters.is_sparse,
            check_storage=False,
        )
        self._resources.add_mapped_bytes(log.length)
        return log

    def _init_congestion_control(
        self,
        undo: ExitStack,
        record: np.record,
        parameters: SubscriptionParameters,
        endpoint: ChannelEndpoint,
        now_ns: int,
    ) -> list[int]:
        """Set an image's initial window. Returns the ids of the congestion control counters."""
        window, ids = int(record["window_max"]), []
        if parameters.congestion_control == subscription_parameters.CUBIC:
            context = self._resources.context
            window = cubic.initial_window(window, int(record["mtu"]))
            for name, value in (("rcv-cc-cubic-rtt", 0), ("rcv-cc-cubic-wnd", window)):
                ids.append(
                    self._resources.counters.stream(
                        stream_counters.PER_IMAGE,
                        int(record["correlation_id"]),
                        stream_counters.NO_OWNER,
                        int(record["session_id"]),
                        int(record["stream_id"]),
                        str(endpoint.channel.uri),
                        name=name,
                        value=value,
                    )
                )
                undo.callback(self._resources.counters.free, ids[-1])
            record["congestion_control"] = congestion_control.CUBIC
            cubic.fill(
                record,
                initial_rtt_ns=context.cubic_initial_rtt_ns,
                is_measuring_rtt=context.cubic_measure_rtt,
                is_tcp_mode=context.cubic_tcp_mode,
                rtt_id=ids[0],
                window_id=ids[1],
                now_ns=now_ns,
            )
        record["next_window"] = record["sm_window"] = window
        return ids

    def _allocate_positions(
        self, undo: ExitStack, record: np.record, oldest: Subscription, start: int
    ) -> list[int]:
        ids = []
        for field, type_id, value in (
            ("hwm_id", stream_counters.RECEIVER_HWM, start),
            ("rcv_pos_id", stream_counters.RECEIVER_POSITION, start),
            ("naks_sent_id", stream_counters.RECEIVER_NAKS_SENT, 0),
            *_gap_counters(record),
        ):
            ids.append(
                self._resources.counters.stream(
                    type_id,
                    int(record["correlation_id"]),
                    oldest.client_id,
                    int(record["session_id"]),
                    int(record["stream_id"]),
                    oldest.channel_text,
                    value=value,
                )
            )
            undo.callback(self._resources.counters.free, ids[-1])
            record[field] = ids[-1]
        return ids


def _gap_counters(record: np.record) -> tuple[tuple[str, int, int], ...]:
    """Return field, type id and initial value of the counters of an image's gaps, which only an
    image with a row for each gap has.
    """
    found = (
        ("gaps_open_id", stream_counters.RECEIVER_GAPS_OPEN, 0),
        ("oldest_gap_id", stream_counters.RECEIVER_OLDEST_GAP, 0),
    )
    if record["is_nak_all_gaps"]:
        return (
            *found,
            ("nak_retries_id", stream_counters.RECEIVER_NAK_RETRIES, 0),
            ("repair_time_id", stream_counters.RECEIVER_REPAIR_TIME, 0),
        )
    if record["is_fill_delayed"]:
        return (*found, ("filled_early_id", stream_counters.RECEIVER_GAPS_FILLED_EARLY, 0))
    return ()
