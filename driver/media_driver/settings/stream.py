"""Default settings for streams, which channel parameters may override.

Names, defaults and ranges are the same as in the C driver. Source: spec 10.1, Aeron 1.53.
"""

from dataclasses import dataclass
from typing import Annotated

from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.channel.publication_parameters import (
    MTU_LENGTH_MAX,
    MTU_LENGTH_MIN,
    RESENDS_MAX,
    TERM_LENGTH_MAX,
    TERM_LENGTH_MIN,
)
from windtunnel.driver.channel.subscription_parameters import Group
from windtunnel.driver.media_driver.settings.setting import Inferable, OptionalDuration
from windtunnel.driver.settings.kinds import Duration, Flag, Number, Size
from windtunnel.driver.settings.units import GIB, KIB, MIB, MS, SECOND, US


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class StreamSettings:
    """Stream settings. Unless stated otherwise, the units are nanoseconds and bytes."""

    mtu_length: Annotated[
        int,
        Size(
            "AERON_MTU_LENGTH",
            "maximum datagram length; a multiple of 32",
            MTU_LENGTH_MIN,
            MTU_LENGTH_MAX,
        ),
    ] = 1_408
    ipc_mtu_length: Annotated[
        int,
        Size(
            "AERON_IPC_MTU_LENGTH",
            "maximum fragment length of IPC; a multiple of 32",
            MTU_LENGTH_MIN,
            MTU_LENGTH_MAX,
        ),
    ] = 1_408
    term_buffer_length: Annotated[
        int,
        Size(
            "AERON_TERM_BUFFER_LENGTH",
            "term length of network publications; a power of two",
            TERM_LENGTH_MIN,
            TERM_LENGTH_MAX,
        ),
    ] = 16 * MIB
    ipc_term_buffer_length: Annotated[
        int,
        Size(
            "AERON_IPC_TERM_BUFFER_LENGTH",
            "term length of IPC publications; a power of two",
            TERM_LENGTH_MIN,
            TERM_LENGTH_MAX,
        ),
    ] = 64 * MIB
    term_buffer_sparse_file: Annotated[
        bool, Flag("AERON_TERM_BUFFER_SPARSE_FILE", "create log buffers as sparse files")
    ] = True
    publication_window_length: Annotated[
        int,
        Size(
            "AERON_PUBLICATION_TERM_WINDOW_LENGTH",
            "bytes that publishers may be ahead of the sender; 0 selects half a term",
            0,
            TERM_LENGTH_MAX,
        ),
    ] = 0
    ipc_publication_window_length: Annotated[
        int,
        Size(
            "AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH",
            "bytes that publishers may be ahead of subscribers; 0 selects half a term",
            0,
            TERM_LENGTH_MAX,
        ),
    ] = 0
    publication_unblock_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_PUBLICATION_UNBLOCK_TIMEOUT",
            "time until an unfinished claim of a dead publisher is unblocked",
            US,
        ),
    ] = 15 * SECOND
    publication_connection_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_PUBLICATION_CONNECTION_TIMEOUT",
            "time without a status message until a publication disconnects",
            US,
        ),
    ] = 5 * SECOND
    publication_linger_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_PUBLICATION_LINGER_TIMEOUT",
            "time that a log buffer is kept after its publication ends",
        ),
    ] = 5 * SECOND
    reserved_session_id_low: Annotated[
        int,
        Number(
            "AERON_PUBLICATION_RESERVED_SESSION_ID_LOW",
            "lowest session id that is never assigned automatically",
        ),
    ] = -1
    reserved_session_id_high: Annotated[
        int,
        Number(
            "AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH",
            "highest session id that is never assigned automatically",
        ),
    ] = 1_000
    spies_simulate_connection: Annotated[
        bool,
        Flag(
            "AERON_SPIES_SIMULATE_CONNECTION",
            "count a publication as connected if it has a spy subscription",
        ),
    ] = False
    max_resend: Annotated[
        int,
        Number(
            "AERON_MAX_RESEND",
            "maximum number of concurrent retransmits of a publication",
            1,
            RESENDS_MAX,
        ),
    ] = 16
    retransmit_ranges: Annotated[
        bool,
        Flag(
            "WINDTUNNEL_RETRANSMIT_RANGES",
            "answer NAKs for many ranges of a stream at once, and none for a range whose "
            "retransmit is under way",
        ),
    ] = False
    publication_linger_max_ns: Annotated[
        int,
        Duration(
            "WINDTUNNEL_PUBLICATION_LINGER_MAX",
            "linger time of a publication with retransmit ranges while a receiver has not "
            "consumed the stream",
        ),
    ] = 60 * SECOND

    image_liveness_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_IMAGE_LIVENESS_TIMEOUT",
            "time without data after which an image counts as dead",
            US,
        ),
    ] = 10 * SECOND
    initial_window_length: Annotated[
        int, Size("AERON_RCV_INITIAL_WINDOW_LENGTH", "initial receiver window", 256)
    ] = 128 * KIB
    status_message_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_RCV_STATUS_MESSAGE_TIMEOUT", "maximum interval between status messages", US
        ),
    ] = 200 * MS
    reliable_stream: Annotated[
        bool,
        Flag(
            "AERON_RELIABLE_STREAM",
            "recover lost frames with NAKs; otherwise fill gaps with padding",
        ),
    ] = True
    nak_all_gaps: Annotated[
        bool,
        Flag(
            "WINDTUNNEL_NAK_ALL_GAPS",
            "send NAKs for all gaps of a reliable stream at once, and repeat them after the "
            "measured repair time",
        ),
    ] = False
    gap_fill_datagrams: Annotated[
        int,
        Number(
            "WINDTUNNEL_GAP_FILL_DATAGRAMS",
            "number of later datagrams after which a gap of an unreliable stream is filled; 0 "
            "fills it at once, or after WINDTUNNEL_GAP_FILL_DELAY",
            0,
        ),
    ] = 0
    gap_fill_delay_ns: Annotated[
        int,
        Duration(
            "WINDTUNNEL_GAP_FILL_DELAY",
            "time after which a gap of an unreliable stream is filled at the latest; 0 selects 100 "
            "ms if WINDTUNNEL_GAP_FILL_DATAGRAMS is set",
        ),
    ] = 0
    rejoin_stream: Annotated[
        bool, Flag("AERON_REJOIN_STREAM", "rejoin a stream after its image became unavailable")
    ] = True
    tether_subscriptions: Annotated[
        bool, Flag("AERON_TETHER_SUBSCRIPTIONS", "let slow subscribers hold back a stream")
    ] = True
    untethered_window_limit_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT",
            "time that an untethered subscriber may hold back the stream",
        ),
    ] = 5 * SECOND
    untethered_linger_timeout_ns: Annotated[
        int | None,
        OptionalDuration(
            "AERON_UNTETHERED_LINGER_TIMEOUT",
            "linger time of a slow untethered subscriber; -1 selects the window limit timeout",
        ),
    ] = None
    untethered_resting_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_UNTETHERED_RESTING_TIMEOUT",
            "time in the resting state until an untethered subscriber may rejoin",
        ),
    ] = 10 * SECOND
    receiver_group_consideration: Annotated[
        Group,
        Inferable("AERON_RECEIVER_GROUP_CONSIDERATION", "whether receivers use group semantics"),
    ] = Group.INFER
    image_term_length_max: Annotated[
        int,
        Size(
            "WINDTUNNEL_IMAGE_TERM_LENGTH_MAX",
            "longest term of an image; streams with longer terms are refused",
            64 * KIB,
            GIB,
        ),
    ] = GIB
    stream_session_limit: Annotated[
        int,
        Number(
            "AERON_DRIVER_STREAM_SESSION_LIMIT",
            "maximum number of sessions per stream and channel endpoint",
            1,
        ),
    ] = I32_MAX
