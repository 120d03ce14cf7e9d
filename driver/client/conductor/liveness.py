"""Liveness of client and driver: sends the client's keepalives and checks the driver's heartbeat.

    every duty cycle  was the last one too long ago?       -> ConductorServiceTimeoutError
    every interval    is the driver's heartbeat too old?   -> DriverTimeoutError
                      was the heartbeat counter freed?     -> DriverTimeoutError
                      write the time into that counter

The driver allocates the heartbeat counter when it receives the client's first command. The client
then appends its name and version to the counter's label, once.
Source: driver-protocol 6.7; Aeron 1.53, C client.
"""

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client.conductor.driver_proxy import DriverProxy
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.client.errors import (
    ClientTerminatedError,
    ConductorServiceTimeoutError,
    DriverTimeoutError,
)
from windtunnel.driver.cnc import counters, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.cnc.counters_manager import append_label

CLIENT_HEARTBEAT_TYPE_ID = 11
CLIENT_VERSION_LABEL = "version=1.53.0 commit=windtunnel"


class Liveness:
    """Sends the keepalives of a client and checks that its driver is alive."""

    def __init__(
        self, context: ClientContext, cnc: CncFile, proxy: DriverProxy, clock: Clock
    ) -> None:
        self._context = context
        self._proxy = proxy
        self._clock = clock
        self._metadata: np.ndarray = cnc.counters_metadata
        self._values: np.ndarray = cnc.counters_values
        self._service_interval_limit_ns = cnc.header.client_liveness_timeout_ns
        self._heartbeat_id = counters.NULL_COUNTER_ID
        self._last_duty_cycle_ns = self._last_keepalive_ns = clock.now_ns()

    def on_duty_cycle(self, now_ns: int) -> ClientTerminatedError | None:
        """Send the client's keepalive when it is due. Also check the time since the last duty cycle
        and the driver's heartbeat.

        Returns the error that terminates the client, or None.
        """
        interval_ns, limit_ns = now_ns - self._last_duty_cycle_ns, self._service_interval_limit_ns
        if interval_ns > limit_ns:
            return ConductorServiceTimeoutError(
                f"service interval exceeded: {interval_ns // system.NS_PER_MS} ms, "
                f"limit {limit_ns // system.NS_PER_MS} ms"
            )
        self._last_duty_cycle_ns = now_ns
        if now_ns - self._last_keepalive_ns <= self._context.keepalive_interval_ns:
            return None
        return self._check_driver() or self._write_heartbeat(now_ns)

    def _check_driver(self) -> DriverTimeoutError | None:
        heartbeat_ms, limit_ms = self._proxy.heartbeat_ms(), self._context.driver_timeout_ms
        if heartbeat_ms == ring_buffer.HEARTBEAT_OF_CLOSED:
            return DriverTimeoutError("the driver has been shut down")
        age_ms = self._clock.now_ms() - heartbeat_ms
        if age_ms > limit_ms:
            return DriverTimeoutError(
                f"the driver's last heartbeat is {age_ms} ms old, limit {limit_ms} ms"
            )
        return None

    def _write_heartbeat(self, now_ns: int) -> DriverTimeoutError | None:
        metadata, values = self._metadata, self._values
        if self._heartbeat_id == counters.NULL_COUNTER_ID:
            client_id = self._proxy.client_id
            found = int(counters.find(metadata, values, CLIENT_HEARTBEAT_TYPE_ID, client_id))
            if found == counters.NULL_COUNTER_ID:
                return None
            self._heartbeat_id = found
            name = self._context.client_name
            append_label(metadata, found, f" name={name} {CLIENT_VERSION_LABEL}")
        elif not counters.is_active(metadata, values, self._heartbeat_id, self._proxy.client_id):
            return DriverTimeoutError("the driver freed this client's heartbeat counter")
        counters.set_release(values, self._heartbeat_id, self._clock.now_ms())
        self._last_keepalive_ns = now_ns
        return None
