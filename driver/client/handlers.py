"""The types of the handlers that an application passes to a client.

The types for fragments and frames are in `image.fragment_handlers`.
"""

from collections.abc import Callable

from windtunnel.driver.client.image.image import Image
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.command.response import PublicationError

ErrorHandler = Callable[[Exception], object]
"""Handler that is called with an error that no API call of the application can raise."""
AvailableImageHandler = Callable[[Image], object]
"""Handler that is called with an image that was added to a subscription."""
UnavailableImageHandler = Callable[[Image], object]
"""Handler that is called with a closed image after its removal from a subscription."""
CounterHandler = Callable[[CountersReader, int, int], object]
"""Handler that is called with a reader of all counters, a counter's registration id and its counter
id."""
PublicationErrorHandler = Callable[[PublicationError], object]
"""Handler that is called with the error frame that a receiver sent to a publication."""
CloseHandler = Callable[[], object]
"""Handler that is called once after the client has closed."""
