"""What publications, subscriptions and counters need from the conductor of their client.

They depend on this Protocol and not on `ClientConductor`, because its module imports theirs.
"""

from typing import Protocol

import numpy as np

from windtunnel.driver.client.conductor.command_channel import CommandChannel
from windtunnel.driver.cnc.counters_reader import CountersReader


class Conductor(Protocol):
    """A client conductor, as resources use it; `ClientConductor` implements it."""

    commands: CommandChannel
    counters: CountersReader
    counter_values: np.ndarray
