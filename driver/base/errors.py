"""The exception tree of the driver, client and archive.

Three roads lead out of trouble. A mistake of ours is an `assert`. A peer's mistake is a status
code, counted and dropped. Only the world's mistakes (files, sockets, settings, commands) travel
as exceptions, and each text names the value, its limit and the setting it came from.
"""


class DriverError(Exception):
    """Anything that the world did to us and that a caller may want to catch."""


class ConfigurationError(DriverError):
    """A setting is unknown, malformed or out of its bounds."""


class StorageError(DriverError):
    """A file cannot be created, mapped, grown or trusted."""


class ActiveDriverError(DriverError):
    """Another driver is alive in the directory that was asked for."""
