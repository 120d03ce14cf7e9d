"""The exception hierarchy of the driver, client and archive.

A programming error is an `assert`. An invalid frame of a peer is a status code: it is counted and
dropped. Errors of the environment (files, sockets, settings, commands) are exceptions; the text
names the value, its limit and the setting that it came from.
"""


class DriverError(Exception):
    """Base class of all errors of the environment."""


class ConfigurationError(DriverError):
    """A setting is unknown, malformed or out of bounds."""


class StorageError(DriverError):
    """A file cannot be created, mapped or grown, or is not trustworthy."""


class ActiveDriverError(DriverError):
    """Another driver is active in the requested directory."""
