"""Authentication of clients and authorisation of their requests.

    connect request --> on_connect_request
    CONNECTED, every 200 ms --> on_connected_session(proxy) --> authenticate, challenge or reject
    challenge response --> on_challenge_response
    CHALLENGED, every turn --> on_challenged_session(proxy)

Both are created by a function that the settings name as `module:function`, where Aeron names a
class. By default every client is authenticated with an empty principal and every request is
allowed. Source: archive-protocol 2.6, 8.1.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from windtunnel.driver.base.errors import ConfigurationError, DriverError

PROTOCOL_ID = 101
"""Passed to an authorisation service; the action id is the template id of the request."""


class SessionProxy(Protocol):
    """What an authenticator can do with a session.

    `authenticate` and `challenge` return whether the message could be sent.
    """

    session_id: int

    def authenticate(self, principal: bytes) -> bool:
        """Accept the session."""

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Send a challenge to the client."""

    def reject(self) -> None:
        """Reject the session."""


class Authenticator(Protocol):
    """Decides which sessions are accepted."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Called for a connect request."""

    def on_challenge_response(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Called for the response to a challenge."""

    def on_connected_session(self, session: SessionProxy, now_ms: int) -> None:
        """Decide about a session to which responses can be sent."""

    def on_challenged_session(self, session: SessionProxy, now_ms: int) -> None:
        """Decide about a session that was challenged."""


class AuthorisationService(Protocol):
    """Decides which requests are allowed."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type_id: int | None, principal: bytes
    ) -> bool:
        """Return whether this principal may make that request."""


class AcceptAll:
    """An authenticator that accepts every session."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Ignore the credentials."""

    def on_challenge_response(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Ignore the response: no session is challenged."""

    def on_connected_session(self, session: SessionProxy, now_ms: int) -> None:
        session.authenticate(b"")

    def on_challenged_session(self, session: SessionProxy, now_ms: int) -> None:
        session.authenticate(b"")


class AllowAll:
    """An authorisation service that allows every request."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type_id: int | None, principal: bytes
    ) -> bool:
        return True


class DenyAll:
    """An authorisation service that allows no request."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type_id: int | None, principal: bytes
    ) -> bool:
        return False


class PluginError(DriverError):
    """An authenticator or authorisation service from the settings has raised an exception."""


class _Guarded:
    """Wraps a plugin: an exception that it raises becomes a PluginError with its name."""

    def __init__(self, plugin: Any, name: str) -> None:
        self._plugin, self._name = plugin, name

    def __getattr__(self, method: str) -> Callable[..., Any]:
        function = getattr(self._plugin, method)

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
    """Create the authenticator named by the settings. Raises ConfigurationError."""
    authenticator: Authenticator = _make_plugin(
        "AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER", name, _AUTHENTICATORS, Authenticator
    )
    return authenticator


def make_authorisation_service(name: str) -> AuthorisationService:
    """Create the authorisation service named by the settings. Raises ConfigurationError."""
    service: AuthorisationService = _make_plugin(
        "AERON_ARCHIVE_AUTHORISATION_SERVICE_SUPPLIER", name, _SERVICES, AuthorisationService
    )
    return service


def _make_plugin(variable: str, name: str, known: dict[str, Any], protocol: type) -> Any:
    factory = known.get(name) or known.get(name.rpartition(".")[2])
    if factory is None:
        module_name, separator, function_name = name.partition(":")
        if not separator:
            raise ConfigurationError(
                f"{variable}={name}: expected {' or '.join(filter(None, known))} or module:function"
            )
        try:
            factory = getattr(import_module(module_name), function_name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigurationError(f"{variable}={name}: {error}") from error
    try:
        plugin = factory()
    except Exception as error:
        # User code may raise anything; the cause is then its configuration or environment.
        raise ConfigurationError(f"{variable}={name}: {error!r}") from error
    missing = [
        method for method in vars(protocol)
        if not method.startswith("_") and not callable(getattr(plugin, method, None))
    ]  # fmt: skip
    if missing:
        raise ConfigurationError(
            f"{variable}={name}: expected an object with the method {missing[0]}, found "
            f"{type(plugin).__name__}"
        )
    return _Guarded(plugin, name) if ":" in name else plugin
