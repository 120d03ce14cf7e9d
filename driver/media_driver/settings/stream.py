"""Settings of streams: their logs and time-outs, where a channel does not say otherwise.

Names, defaults and bounds are those of the C driver. Source: spec 10.1, Aeron 1.53.
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
from windtunnel.driver.settings.units import KIB, MIB, MS, SECOND, US


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """Durations in nanoseconds and lengths in bytes unless a name says else."""

    mtu_length: Annotated[
        int,
        Size(
            "AERON_MTU_LENGTH",
            "longest datagram; a multiple of 32",
            MTU_LENGTH_MIN,
            MTU_LENGTH_MAX,
        ),
    ] = 1_408
    ipc_mtu_length: Annotated[
        int,
        Size(
            "AERON_IPC_MTU_LENGTH",
            "longest fragment; a multiple of 32",
            MTU_LENGTH_MIN,
            MTU_LENGTH_MAX,
        ),
    ] = 1_408
    term_buffer_length: Annotated[
        int,
        Size(
            "AERON_TERM_BUFFER_LENGTH",
            "term of a network publication; a power of two",
            TERM_LENGTH_MIN,
            TERM_LENGTH_MAX,
        ),
    ] = 16 * MIB
    ipc_term_buffer_length: Annotated[
        int,
        Size(
            "AERON_IPC_TERM_BUFFER_LENGTH",
            "term of an IPC publication; a power of two",
            TERM_LENGTH_MIN,
            TERM_LENGTH_MAX,
        ),
    ] = 64 * MIB
    term_buffer_sparse_file: Annotated[
        bool, Flag("AERON_TERM_BUFFER_SPARSE_FILE", "let logs grow as they are written")
    ] = True
    publication_window_length: Annotated[
        int,
        Size(
            "AERON_PUBLICATION_TERM_WINDOW_LENGTH",
            "how far publishers may be ahead of the sender; 0 is half a term",
            0,
            TERM_LENGTH_MAX,
        ),
    ] = 0
    ipc_publication_window_length: Annotated[
        int,
        Size(
            "AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH",
            "how far publishers may be ahead of subscribers; 0 is half a term",
            0,
            TERM_LENGTH_MAX,
        ),
    ] = 0
    publication_unblock_timeout_ns: Annotated[
        int,
        Duration("AERON_PUBLICATION_UNBLOCK_TIMEOUT", "until a dead writer is written over", US),
    ] = 15 * SECOND
    publication_connection_timeout_ns: Annotated[
        int, Duration("AERON_PUBLICATION_CONNECTION_TIMEOUT", "without a status message", US)
    ] = 5 * SECOND
    publication_linger_timeout_ns: Annotated[
        int, Duration("AERON_PUBLICATION_LINGER_TIMEOUT", "life of a log after its publication")
    ] = 5 * SECOND
    reserved_session_id_low: Annotated[
        int, Number("AERON_PUBLICATION_RESERVED_SESSION_ID_LOW", "first id that is never drawn")
    ] = -1
    reserved_session_id_high: Annotated[
        int, Number("AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH", "last id that is never drawn")
    ] = 1_000
    spies_simulate_connection: Annotated[
        bool, Flag("AERON_SPIES_SIMULATE_CONNECTION", "a spy is enough to publish")
    ] = False
    max_resend: Annotated[
        int, Number("AERON_MAX_RESEND", "retransmits that may be under way", 1, RESENDS_MAX)
    ] = 16

    image_liveness_timeout_ns: Annotated[
        int, Duration("AERON_IMAGE_LIVENESS_TIMEOUT", "silence after which an image is dead", US)
    ] = 10 * SECOND
    initial_window_length: Annotated[
        int, Size("AERON_RCV_INITIAL_WINDOW_LENGTH", "what a receiver offers at first", 256)
    ] = 128 * KIB
    status_message_timeout_ns: Annotated[
        int, Duration("AERON_RCV_STATUS_MESSAGE_TIMEOUT", "between two status messages", US)
    ] = 200 * MS
    reliable_stream: Annotated[
        bool, Flag("AERON_RELIABLE_STREAM", "ask again for what was lost")
    ] = True
    rejoin_stream: Annotated[bool, Flag("AERON_REJOIN_STREAM", "follow a stream that went")] = True
    tether_subscriptions: Annotated[
        bool, Flag("AERON_TETHER_SUBSCRIPTIONS", "let slow subscribers hold a stream back")
    ] = True
    untethered_window_limit_timeout_ns: Annotated[
        int, Duration("AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT", "untethered and too slow")
    ] = 5 * SECOND
    untethered_linger_timeout_ns: Annotated[
        int | None,
        OptionalDuration(
            "AERON_UNTETHERED_LINGER_TIMEOUT", "until it rests; -1 is the window limit's"
        ),
    ] = None
    untethered_resting_timeout_ns: Annotated[
        int, Duration("AERON_UNTETHERED_RESTING_TIMEOUT", "until it may join again")
    ] = 10 * SECOND
    receiver_group_consideration: Annotated[
        Group, Inferable("AERON_RECEIVER_GROUP_CONSIDERATION", "is a receiver one of many?")
    ] = Group.INFER
    stream_session_limit: Annotated[
        int, Number("AERON_DRIVER_STREAM_SESSION_LIMIT", "sessions of one stream and endpoint", 1)
    ] = I32_MAX
