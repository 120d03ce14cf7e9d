"""Commands that wait outside the ring buffer for a host name lookup.

    ring --> execute --> done
               `-- a name is being looked up --> [waiting] -- lookup done --> execute again

While a command waits, other commands, also those of the same client, are executed: a name without
an answer may take as long as ten seconds. A command for the same publication, subscription or
destination as a waiting one is executed after it. Aeron's C driver executes no commands during a
lookup.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from windtunnel.driver.command.client import ClientClose
from windtunnel.driver.command.codec import Command
from windtunnel.driver.command.command_type import NULL_ID, ErrorCode
from windtunnel.driver.command.counter import AddStaticCounter, RemoveCounter
from windtunnel.driver.media_driver.command_error import (
    CommandError,
    CommandPendingError,
    NamePendingError,
)
from windtunnel.driver.media_driver.name_resolution.name_resolver import (
    CommandLookups,
    NameResolver,
)

WAITING_PER_CLIENT_MAX = 64
"""The maximum number of waiting commands per client. Additional commands are refused."""
LOOKUPS_PER_CLIENT_MAX = 32
"""The maximum number of commands per client whose names are being looked up. Others wait for them,
so one client does not keep all lookup threads busy."""


@dataclass(eq=False)
class _WaitingCommand:
    command: Command
    lookups: CommandLookups = field(default_factory=CommandLookups)


class WaitingCommands:
    """The waiting commands of all clients, oldest first. Only the conductor uses this list."""

    def __init__(self, names: NameResolver, execute: Callable[[Command], None]) -> None:
        """Create an empty list. The function `execute` must execute a command and report the
        command's errors.
        """
        self._names, self._execute = names, execute
        self._waiting: list[_WaitingCommand] = []

    @property
    def has_commands(self) -> bool:
        return bool(self._waiting)

    def execute(self, command: Command) -> None:
        """Execute a command from the ring buffer, or keep it until its host names are resolved.

        Raises CommandError if too many commands of the client wait, and CommandPendingError if the
        command must stay in the ring buffer.
        """
        if isinstance(command, ClientClose):
            self.discard(command.client_id)
        if not self._waiting:
            may_execute = True
        else:
            may_execute = not self._follows(command, self._waiting)
            self._names.may_submit = self._has_room(command.client_id)
        if may_execute:
            try:
                self._execute(command)
                return
            except NamePendingError:
                pass
            finally:
                self._names.may_submit = True
        count = sum(each.command.client_id == command.client_id for each in self._waiting)
        if count >= WAITING_PER_CLIENT_MAX:
            raise CommandError(
                f"this client already has {count} commands that wait for name resolution: "
                "retry later",
                ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE,
            )
        self._waiting.append(_WaitingCommand(command, self._names.exchange_lookups()))

    def do_work(self) -> int:
        """Execute the commands whose lookups are done. Returns the number of executed commands."""
        work_count = 0
        for waiting in tuple(self._waiting):
            if waiting.lookups.is_done:
                work_count += self._retry(waiting)
        return work_count

    def _retry(self, waiting: _WaitingCommand) -> int:
        has_room = self._has_room(waiting.command.client_id)
        if not has_room and not waiting.lookups.by_name:
            return 0
        if self._follows(waiting.command, self._waiting[: self._waiting.index(waiting)]):
            return 0
        # A command in the ring buffer may need lookups too.
        others = self._names.exchange_lookups(waiting.lookups)
        self._names.may_submit = has_room
        try:
            self._execute(waiting.command)
        except CommandPendingError:
            return 0
        finally:
            self._names.may_submit = True
            self._names.exchange_lookups(others)
        self._waiting.remove(waiting)
        return 1

    def discard(self, client_id: int) -> None:
        """Discard the waiting commands of a client that has closed or timed out."""
        self._waiting = [each for each in self._waiting if each.command.client_id != client_id]

    def _has_room(self, client_id: int) -> bool:
        in_progress = sum(
            not each.lookups.is_done
            for each in self._waiting
            if each.command.client_id == client_id
        )
        return in_progress < LOOKUPS_PER_CLIENT_MAX

    def _follows(self, command: Command, earlier: list[_WaitingCommand]) -> bool:
        """Return whether a command concerns the same resource as an earlier command and must
        therefore be executed after it.
        """
        ids = _ids_of(command)
        return any(
            each.command.client_id == command.client_id
            and not ids.isdisjoint(_ids_of(each.command))
            for each in earlier
        )


def _ids_of(command: Command) -> set[int]:
    """Return the registration ids of the publications, subscriptions and destinations that a
    command concerns.
    """
    if isinstance(command, AddStaticCounter | RemoveCounter):
        return set()
    names = ("correlation_id", "registration_id", "destination_registration_id")
    return {getattr(command, name, NULL_ID) for name in names} - {NULL_ID}
