"""A client: connect to a driver, add publications and subscriptions, close.

    with Aeron("/dev/shm/aeron-me") as aeron:
        subscription = aeron.add_subscription("aeron:udp?endpoint=localhost:20121", 1001)
        while True:
            subscription.poll(lambda payload, header: print(bytes(payload)))

It connects to the driver of a directory and keeps itself alive; what it opened is closed with it.
"""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from driver.base import system
from driver.base.clock import Clock, SystemClock
from driver.client.conductor import ClientConductor
from driver.client.context import ClientContext
from driver.client.publication import Publication
from driver.client.subscription import ImageHandler, Subscription
from driver.cnc import cnc_file


class Aeron:
    """One client of one driver; its own thread keeps it alive unless `invoked` is True."""

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        context: ClientContext | None = None,
        clock: Clock | None = None,
        invoked: bool = False,
    ) -> None:
        if context is None:
            context = ClientContext() if directory is None else ClientContext(dir=Path(directory))
        self.context = context.conclude()
        clock = clock or SystemClock()
        self._cnc = cnc_file.connect(
            self.context.dir, clock, system.sleep_ns, self.context.driver_timeout_ms
        )
        self._conductor = ClientConductor(self.context, self._cnc, clock)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        if not invoked:
            self._thread = threading.Thread(target=self._run, name="windtunnel-client", daemon=True)
            self._thread.start()

    @property
    def client_id(self) -> int:
        """Who we are to the driver."""
        return self._conductor.client_id

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by its program or because the driver is gone."""
        return self._conductor.is_closed

    @property
    def failure(self) -> str:
        """Why it closed by itself; empty otherwise."""
        return self._conductor.failure

    def _run(self) -> None:
        while not self._stopping.wait(self.context.idle_sleep_ns / 1e9):
            try:
                self._conductor.do_work()
            except Exception as error:
                # Nobody would notice that this thread is gone: whoever polls must hear of it.
                self._conductor.fail(f"the client's thread failed: {error!r}")
                raise

    def invoke(self) -> int:
        """One turn of the conductor, for an invoked client. Returns an amount of work."""
        return self._conductor.do_work()

    def add_publication(self, channel: str, stream_id: int) -> Publication:
        """A publication that many threads and clients may share."""
        return self._conductor.add_publication(channel, stream_id, is_exclusive=False)

    def add_exclusive_publication(self, channel: str, stream_id: int) -> Publication:
        """A publication for one writing thread."""
        return self._conductor.add_publication(channel, stream_id, is_exclusive=True)

    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> Subscription:
        """A subscription; the handlers are called by the client's thread."""
        return self._conductor.add_subscription(
            channel, stream_id, on_available_image, on_unavailable_image
        )

    def close(self) -> None:
        """Close everything that this client opened."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self._conductor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
