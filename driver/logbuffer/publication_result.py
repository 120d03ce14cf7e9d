"""Results of an offer: a positive stream position, or one of these codes.

Source: driver-protocol 2.6.
"""

NOT_CONNECTED = -1
"""The stream has no connected subscriber."""
BACK_PRESSURED = -2
"""The subscribers do not consume fast enough; try again later."""
ADMIN_ACTION = -3
"""The term was rotated or is being rotated, nothing was written; try again at once."""
CLOSED = -4
"""The publication is closed; the appender itself never returns this."""
MAX_POSITION_EXCEEDED = -5
"""The stream has no terms left."""
ERROR = -6
"""The arguments are invalid: a message too long, or an invalid block."""
