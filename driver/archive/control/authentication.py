"""Who may talk to an archive, and who may ask for what.

    connect request --> on_connect_request
    CONNECTED, every 200 ms --> on_connected_session(proxy) --> authenticate, challenge or reject
    challenge response --> on_challenge_response
    CHALLENGED, every turn --> on_challenged_session(proxy)

Both are made by a function that the settings name as `module:function`, where Aeron names a class.
Unless told otherwise everybody is let in, with an empty principal, and may do everything.
Source: archive-protocol 2.6, 8.1.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from windtunnel.driver.base.errors import ConfigurationError, DriverError

PROTOCOL_ID = 101
"""What an authorisation service is asked with; the action is the request's template id."""


class SessionProxy(Protocol):
    """What an authenticator can do about a session; each returns whether it could be told."""

    session_id: int

    def authenticate(self, principal: bytes) -> bool:
        """Let it in."""

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Ask for more."""

    def reject(self) -> None:
        """Turn it away."""


class Authenticator(Protocol):
    """Decides about sessions."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """A client wants to talk."""

    def on_challenge_response(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """A client has answered a challenge."""

    def on_connected_session(self, session: SessionProxy, now_ms: int) -> None:
        """Decide about a session that can be answered."""

    def on_challenged_session(self, session: SessionProxy, now_ms: int) -> None:
        """Decide about a session that was challenged."""


class AuthorisationService(Protocol):
    """Decides about requests."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type_id: int | None, principal: bytes
    ) -> bool:
        """Whether this principal may ask for that."""


class AcceptAll:
    """Lets everybody in."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Whoever it is."""

    def on_challenge_response(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Nobody was challenged."""

    def on_connected_session(self, session: SessionProxy, now_ms: int) -> None:
        session.authenticate(b"")

    def on_challenged_session(self, session: SessionProxy, now_ms: int) -> None:
        session.authenticate(b"")


class AllowAll:
    """Allows every request."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type_id: int | None, principal: bytes
    ) -> bool:
        return True


class DenyAll:
    """Allows no request."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type_id: int | None, principal: bytes
    ) -> bool:
        return False


class PluginError(DriverError):
    """What was named by a setting has failed."""


class _Guarded:
    """Somebody else's code: whatever it raises is an error of the world's, told with its name."""

    def __init__(self, made: Any, name: str) -> None:
        self._made, self._name = made, name

    def __getattr__(self, method: str) -> Callable[..., Any]:
        function = getattr(self._made, method)

        def guarded(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception as error:
                raise PluginError(f"{self._name}.{method}: {error!r}") from error

        return guarded


_AUTHENTICATORS: dict[str, Callable[[], Authenticator]] = {
    "": AcceptAll, "DefaultAuthenticatorSupplier": AcceptAll,
}  # fmt: skip
_SERVICES: dict[str, Callable[[], AuthorisationService]] = {
    "": AllowAll, "ALLOW_ALL": AllowAll, "DENY_ALL": DenyAll,
}  # fmt: skip


def make_authenticator(name: str) -> Authenticator:
    """The authenticator of a setting. Raises ConfigurationError."""
    made: Authenticator = _made(
        "AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER", name, _AUTHENTICATORS, Authenticator
    )
    return made


def make_authorisation_service(name: str) -> AuthorisationService:
    """The authorisation service of a setting. Raises ConfigurationError."""
    made: AuthorisationService = _made(
        "AERON_ARCHIVE_AUTHORISATION_SERVICE_SUPPLIER", name, _SERVICES, AuthorisationService
    )
    return made


def _made(variable: str, name: str, known: dict[str, Any], contract: type) -> Any:
    found = known.get(name) or known.get(name.rpartition(".")[2])
    if found is None:
        module_name, mark, function_name = name.partition(":")
        if not mark:
            raise ConfigurationError(
                f"{variable}={name}: expected {' or '.join(filter(None, known))} or module:function"
            )
        try:
            found = getattr(import_module(module_name), function_name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigurationError(f"{variable}={name}: {error}") from error
    try:
        made = found()
    except Exception as error:
        # It is the user's own; whatever it raises is about what it was given or needs.
        raise ConfigurationError(f"{variable}={name}: {error!r}") from error
    missing = [
        method for method in vars(contract)
        if not method.startswith("_") and not callable(getattr(made, method, None))
    ]  # fmt: skip
    if missing:
        raise ConfigurationError(f"{variable}={name}: it made something without {missing[0]}")
    return _Guarded(made, name) if ":" in name else made
