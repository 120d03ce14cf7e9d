"""The client conductor's interface for publications, subscriptions and counters.

They depend on this Protocol and not on `ClientConductor`, because the `ClientConductor` module
imports their modules.
"""

from typing import Protocol

import numpy as np

from windtunnel.driver.client.conductor.command_channel import CommandChannel
from windtunnel.driver.cnc.counters_reader import CountersReader


class Conductor(Protocol):
    """The client conductor's interface for publications, subscriptions and counters.
    `ClientConductor` implements it.
    """

    commands: CommandChannel
    counters: CountersReader
    counter_values: np.ndarray
