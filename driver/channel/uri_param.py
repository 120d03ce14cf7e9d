"""Names of channel URI parameters.

Parameter values are checked where they are used: addresses in `udp_channel`, other values in
`publication_parameters` and `subscription_parameters`. Unknown keys are kept and ignored. Source:
spec 9.2, Aeron 1.53.
"""

ENDPOINT = "endpoint"
INTERFACE = "interface"
CONTROL = "control"
CONTROL_MODE = "control-mode"
TTL = "ttl"
TAGS = "tags"
ALIAS = "alias"

MTU_LENGTH = "mtu"
TERM_LENGTH = "term-length"
INITIAL_TERM_ID = "init-term-id"
TERM_ID = "term-id"
TERM_OFFSET = "term-offset"
SESSION_ID = "session-id"
STREAM_ID = "stream-id"
LINGER = "linger"
SPARSE = "sparse"
EOS = "eos"
SPIES_SIMULATE_CONNECTION = "ssc"
PUBLICATION_WINDOW = "pub-wnd"
MAX_RESEND = "max-resend"
FLOW_CONTROL = "fc"
RETRANSMIT_RANGES = "windtunnel.retransmit-ranges"
LINGER_MAX = "windtunnel.linger-max"
RESPONSE_CORRELATION_ID = "response-correlation-id"

RELIABLE = "reliable"
TETHER = "tether"
REJOIN = "rejoin"
GROUP = "group"
GROUP_TAG = "gtag"
CONGESTION_CONTROL = "cc"
RECEIVER_WINDOW = "rcv-wnd"
NAK_DELAY = "nak-delay"
NAK_ALL_GAPS = "windtunnel.nak-all-gaps"
GAP_FILL_DATAGRAMS = "windtunnel.gap-fill-datagrams"
GAP_FILL_DELAY = "windtunnel.gap-fill-delay"
RESPONSE_ENDPOINT = "response-endpoint"

SOCKET_SNDBUF = "so-sndbuf"
SOCKET_RCVBUF = "so-rcvbuf"
UNTETHERED_WINDOW_LIMIT_TIMEOUT = "untethered-window-limit-timeout"
UNTETHERED_LINGER_TIMEOUT = "untethered-linger-timeout"
UNTETHERED_RESTING_TIMEOUT = "untethered-resting-timeout"
MEDIA_RECEIVE_TIMESTAMP_OFFSET = "media-rcv-ts-offset"
CHANNEL_RECEIVE_TIMESTAMP_OFFSET = "channel-rcv-ts-offset"
CHANNEL_SEND_TIMESTAMP_OFFSET = "channel-snd-ts-offset"
ATS = "ats"

NOT_FOR_DESTINATIONS = (
    MTU_LENGTH,
    RECEIVER_WINDOW,
    SOCKET_SNDBUF,
    SOCKET_RCVBUF,
    RESPONSE_CORRELATION_ID,
)
"""Parameters that are valid for a channel but not for its destinations."""
