"""What an offer answers: a positive new stream position, or one of these codes.

Source: driver-protocol 2.6.
"""

NOT_CONNECTED = -1
"""Nobody listens."""
BACK_PRESSURED = -2
"""Somebody listens but takes no more for now."""
ADMIN_ACTION = -3
"""The term was rotated, or is being rotated; nothing was written, try again at once."""
CLOSED = -4
"""The publication was closed; the appender itself never answers this."""
MAX_POSITION_EXCEEDED = -5
"""The stream has no terms left."""
ERROR = -6
"""The arguments cannot be offered: a message too long, a block that is not one."""
