"""The codes of the conductor's errors, for clients and for the error log."""

import errno

from windtunnel.driver.base.errors import ConfigurationError, StorageError
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.uri import InvalidChannelError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media.udp_socket import SocketError
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.storage import InsufficientSpaceError


def code_of(error: Exception) -> int:
    """Return the error code that a client receives."""
    if isinstance(error, CommandError):
        return int(error.code)
    if isinstance(error, InvalidChannelError):
        return int(ErrorCode.INVALID_CHANNEL)
    if isinstance(error, UnknownHostError):
        return int(ErrorCode.UNKNOWN_HOST)
    if isinstance(error, InsufficientSpaceError) or _is_full(error.__cause__):
        return int(ErrorCode.STORAGE_SPACE)
    return int(ErrorCode.GENERIC_ERROR)


def logged_code_of(error: Exception) -> int:
    """Return the code of an error's entry in the error log, which is negative for errors of the
    system. As in the C driver, it says more than the client's GENERIC_ERROR.
    """
    if isinstance(error, SocketError) and error.code:
        return -error.code
    if isinstance(error, OSError):
        return -(error.errno or errno.EIO)
    if isinstance(error, StorageError) and not isinstance(error, InsufficientSpaceError):
        cause = error.__cause__
        # Without a cause, the driver has no free counter or subscriber position.
        return -(cause.errno or errno.EIO) if isinstance(cause, OSError) else -errno.ENOMEM
    code = code_of(error)
    is_invalid = code == ErrorCode.GENERIC_ERROR and isinstance(error, ConfigurationError)
    return -errno.EINVAL if is_invalid else code


def _is_full(cause: BaseException | None) -> bool:
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
