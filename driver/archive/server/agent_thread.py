"""Runs an agent in a separate thread, with an idle strategy."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from windtunnel.driver.base import idle
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.kernels.jit import compile_for


class AgentThread:
    """A thread that runs an agent's duty cycle until it is stopped or the agent fails.

    `top -H` and profilers show the first 15 characters of its name.
    """

    def __init__(
        self, name: str, do_work: Callable[[int], int], idle_state: np.ndarray, clock: Clock
    ) -> None:
        self._do_work, self._idle, self._clock = do_work, idle_state, clock
        self._is_stopping = False
        self.failure: BaseException | None = None
        """The exception that ended the agent, or None."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with suppress(OSError):
                Path("/proc/thread-self/comm").write_text(self._thread.name, encoding="ascii")
            after_turn = compile_for(idle.after_turn, (self._idle, 0))
            while not self._is_stopping:
                after_turn(self._idle, self._do_work(self._clock.now_ns()))
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        """Finish the current duty cycle and join the thread."""
        self._is_stopping = True
        self._thread.join()
