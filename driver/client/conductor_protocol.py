"""The interface of the client conductor that publications, subscriptions and counters use.

They depend on this Protocol and not on `ClientConductor`, because the `ClientConductor` module
imports their modules.
"""

from typing import Protocol

import numpy as np

from windtunnel.driver.client.conductor.command_channel import CommandChannel
from windtunnel.driver.cnc.counters_reader import CountersReader


class Conductor(Protocol):
    """The client conductor, as publications, subscriptions and counters see it. `ClientConductor`
    implements it.
    """

    commands: CommandChannel
    counters: CountersReader
    counter_values: np.ndarray
