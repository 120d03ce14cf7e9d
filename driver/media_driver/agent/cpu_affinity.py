"""CPU affinity of the agents' threads.

A shared thread uses the conductor's setting. A shared network thread uses the sender's setting.
Source: the C driver of Aeron 1.53.
"""

import os
from collections.abc import Callable

from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.context import Context

_SETTING_OF_THREAD = {
    "conductor": "conductor_cpu_affinity",
    "shared": "conductor_cpu_affinity",
    "sender": "sender_cpu_affinity",
    "shared-network": "sender_cpu_affinity",
    "receiver": "receiver_cpu_affinity",
}


def pin_thread(context: Context, thread: str, record_error: Callable[[int, str], None]) -> None:
    """Set the CPU affinity of the calling thread, and record a failure in the error log."""
    cpu = getattr(context, _SETTING_OF_THREAD[thread])
    if cpu < 0:
        return
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        record_error(
            int(ErrorCode.GENERIC_ERROR),
            f"WARNING: unable to apply affinity: {thread} to processor {cpu}: {error.strerror}",
        )
