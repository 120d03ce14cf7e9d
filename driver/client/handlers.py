"""Types of the callables that a program passes to a client.

Handlers of fragments and frames are in `image.fragment_handlers`.
"""

from collections.abc import Callable

from windtunnel.driver.client.image.image import Image
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.command.response import PublicationError

ErrorHandler = Callable[[Exception], object]
"""Called with an error that no call of the program can raise."""
AvailableImageHandler = Callable[[Image], object]
"""Called with an image that was added to a subscription."""
UnavailableImageHandler = Callable[[Image], object]
"""Called with an image that was removed from a subscription; it is closed by then."""
CounterHandler = Callable[[CountersReader, int, int], object]
"""Called with (reader of all counters, registration id, counter id)."""
PublicationErrorHandler = Callable[[PublicationError], object]
"""Called with the error frame that a receiver sent for a publication."""
CloseHandler = Callable[[], object]
"""Called once, after the client has closed."""
