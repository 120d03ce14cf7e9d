"""Authentication of clients and authorisation of their requests.

    connect request --> on_connect_request
    CONNECTED, every 200 ms --> on_connected_session(proxy) --> authenticate, challenge or reject
    challenge response --> on_challenge_response
    CHALLENGED, every turn --> on_challenged_session(proxy)

A setting contains the function that creates the authenticator or authorisation service, as
`module:function`. Aeron's setting contains a class. By default every client is authenticated with
an empty principal and every request is allowed. Source: archive-protocol 2.6, 8.1.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from windtunnel.driver.base.errors import ConfigurationError, DriverError

PROTOCOL_ID = 101
"""The protocol id that is passed to an authorisation service. The action id is the request's
template id.
"""


class SessionProxy(Protocol):
    """The operations that an authenticator can perform on a session.

    `authenticate` and `challenge` return whether the message could be sent.
    """

    session_id: int

    def authenticate(self, principal: bytes) -> bool:
        """Accept the session. Returns whether the connect response could be sent."""

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Send a challenge to the client. Returns whether the challenge could be sent."""

    def reject(self) -> None:
        """Reject the session."""


class Authenticator(Protocol):
    """Decides which control sessions an archive accepts."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Process the credentials of a client that has sent a connect request."""

    def on_challenge_response(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Process the credentials of a client that has responded to a challenge."""

    def on_connected_session(self, session: SessionProxy, now_ms: int) -> None:
        """Accept, challenge or reject a session whose client can receive responses."""

    def on_challenged_session(self, session: SessionProxy, now_ms: int) -> None:
        """Accept or reject a session after a challenge."""


class AuthorisationService(Protocol):
    """Decides which requests an archive allows."""

    def is_authorised(
        self, protocol_id: int, action_id: int, type_id: int | None, principal: bytes
    ) -> bool:
        """Return whether the principal is allowed to make this request."""


class AcceptAll:
    """An authenticator that accepts every session."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Ignore the credentials in the connect request."""

    def on_challenge_response(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Ignore the response, because this authenticator sends no challenges."""

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
    """A configured authenticator or authorisation service has raised an exception."""


class _Guarded:
    """Wraps a configured plugin. Converts each exception of the plugin to a PluginError that
    contains the plugin's name.
    """

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
    """Create the authenticator that the settings specify. Raises ConfigurationError if the setting
    is invalid or the plugin cannot be created.
    """
    authenticator: Authenticator = _make_plugin(
        "AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER", name, _AUTHENTICATORS, Authenticator
    )
    return authenticator


def make_authorisation_service(name: str) -> AuthorisationService:
    """Create the authorisation service that the settings specify. Raises ConfigurationError if the
    setting is invalid or the plugin cannot be created.
    """
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
