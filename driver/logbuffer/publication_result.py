"""Error codes of an offer. A successful offer returns a positive stream position instead.

Source: driver-protocol 2.6.
"""

NOT_CONNECTED = -1
"""The stream has no connected subscriber."""
BACK_PRESSURED = -2
"""The publication has reached its limit, because subscribers do not consume fast enough. Try again
later."""
ADMIN_ACTION = -3
"""Nothing was written because the log is rotating to its next term. Try again at once."""
CLOSED = -4
"""The publication is closed. The appender itself never returns this code."""
MAX_POSITION_EXCEEDED = -5
"""The stream has reached its maximum position."""
ERROR = -6
"""An argument is invalid; for example, the message is too long."""
