"""The objects of an archive that all of its control sessions share."""

from dataclasses import dataclass

from windtunnel.driver.archive.control.authentication import Authenticator, AuthorisationService
from windtunnel.driver.archive.observation.archive_errors import ArchiveErrors
from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.client.aeron import Aeron


@dataclass(frozen=True)
class SessionContext:
    """The objects of an archive that all of its control sessions share."""

    settings: ArchiveSettings
    client: Aeron
    archive_id: int
    errors: ArchiveErrors
    authenticator: Authenticator
    authorisation: AuthorisationService
