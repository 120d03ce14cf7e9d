"""Clients of an invoked driver: the driver runs a duty cycle whenever a client waits."""

from contextlib import contextmanager

from tests.unit.driver.media_driver.invoked_driver import MS, lab
from windtunnel.driver.base import system
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.context import ClientContext


def run_until(turn, condition, turns):
    """Run duty cycles until the condition is true; return its value."""
    for _ in range(turns):
        found = condition()
        if found:
            return found
        turn()
    raise AssertionError(f"not within {turns} turns")


class World:
    """One driver and its clients, with a manual clock."""

    def __init__(self, folder, driver):
        self.folder, self.driver, self.clients = folder, driver, []
        self.errors = []

    def connect(self, **settings):
        settings = {"dir": self.folder / "aeron", "error_handler": self.errors.append} | settings
        context = ClientContext(**settings)
        self.clients.append(Aeron(context=context, clock=self.driver.clock, invoked=True))
        return self.clients[-1]

    def both(self, count=20, step_ns=1 * MS):
        """Run duty cycles of driver and clients."""
        for _ in range(count):
            self.driver.turn(1, step_ns)
            for client in self.clients:
                client.invoke()

    def until(self, condition, turns=3_000):
        """Run duty cycles until the condition is true."""
        return run_until(lambda: self.both(1), condition, turns)


@contextmanager
def world(folder, monkeypatch):
    with lab(folder / "aeron") as opened:
        monkeypatch.setattr(system, "sleep_ns", lambda ns: opened.turn(1, 1 * MS))
        opened.turn()
        made = World(folder, opened)
        yield made
        for client in made.clients:
            client.close()
