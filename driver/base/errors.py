"""The exception hierarchy of the driver, client and archive.

A programming error fails an `assert`. For an invalid frame from a peer, functions return a status
code, and the frame is counted and dropped. Environment errors (files, sockets, settings, commands)
are exceptions whose message contains the value, its limit and the setting that it came from.
"""


class DriverError(Exception):
    """Base class of errors caused by the environment, for example by files, sockets or settings."""


class ConfigurationError(DriverError):
    """A setting is unknown, malformed or out of range."""


class StorageError(DriverError):
    """A file cannot be created, mapped or grown, or its content cannot be trusted."""


class ActiveDriverError(DriverError):
    """Another driver is active in the requested directory."""
