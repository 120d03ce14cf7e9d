"""Builds the name resolver that AERON_NAME_RESOLVER_SUPPLIER selects.

    AERON_NAME_RESOLVER_SUPPLIER    default     the operating system
                                    csv_table   rows of AERON_NAME_RESOLVER_INIT_ARGS
                                    driver      names of other drivers, AERON_DRIVER_RESOLVER_*

The names of the C supplier functions are also accepted. Source: spec 10.1,
aeron_name_resolver, Aeron 1.53.
"""

from collections.abc import Callable

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.address_text import HostPort, parse_host_port, parse_interface
from windtunnel.driver.channel.resolver import Resolver
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.channel.uri import InvalidChannelError
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.cnc.error_log import RecordError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media.udp_socket import SocketOptions
from windtunnel.driver.media_driver.context import INVOKER, Context
from windtunnel.driver.media_driver.name_resolution.csv_table import CsvTable, parse_table
from windtunnel.driver.media_driver.name_resolution.driver_name_resolver import (
    DriverNameResolver,
    GossipSettings,
)
from windtunnel.driver.media_driver.name_resolution.lookups import Lookups
from windtunnel.driver.media_driver.name_resolution.name_resolver import (
    EmptyNameSource,
    NameResolver,
    NameSource,
)
from windtunnel.driver.media_driver.name_resolution.resolution_datagram import encode_name
from windtunnel.driver.media_driver.name_resolution.resolver_socket import UdpResolverSocket
from windtunnel.driver.wire import resolution

DEFAULT, CSV_TABLE, DRIVER = "default", "csv_table", "driver"
_FUNCTIONS = {name: f"aeron_{name}_name_resolver_supplier" for name in (DEFAULT, CSV_TABLE, DRIVER)}
_NAME_SETTING = "AERON_DRIVER_RESOLVER_NAME"
_INTERFACE_SETTING = "AERON_DRIVER_RESOLVER_INTERFACE"
_BOOTSTRAP_SETTING = "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR"
BOOTSTRAP_NEIGHBORS_MAX = 20
COMMAND_WORKERS_MAX = 128
"""The maximum number of lookup threads for commands, enough for four clients with their maximum
number of lookups. A thread is started only when all others are busy."""
BACKGROUND_WORKERS_MAX = 8
"""The maximum number of threads that re-resolve names in the background."""


def supplier_of(text: str) -> str:
    """Return the name resolver supplier that a setting's text selects. Raises ConfigurationError if
    the text selects none.
    """
    for name, function in _FUNCTIONS.items():
        if text in (name, function):
            return name
    raise ConfigurationError(
        f"AERON_NAME_RESOLVER_SUPPLIER is {text}, expected one of {', '.join(_FUNCTIONS)}"
    )


def parse_bootstrap_neighbors(
    text: str, record_error: Callable[[int, str], None]
) -> tuple[HostPort, ...]:
    """Parse a comma-separated list of host:port items. Malformed items are skipped and recorded in
    the error log.

    Raises ConfigurationError if all items are malformed or if there are too many items.
    """
    found = [item for item in text.split(",") if item]
    if len(found) > BOOTSTRAP_NEIGHBORS_MAX:
        raise ConfigurationError(
            f"{_BOOTSTRAP_SETTING} has {len(found)} neighbors, expected at most "
            f"{BOOTSTRAP_NEIGHBORS_MAX}"
        )
    good, faults = [], []
    for item in found:
        try:
            good.append(parse_host_port(_BOOTSTRAP_SETTING, item))
        except InvalidChannelError as error:
            faults.append(str(error))
    if faults and not good:
        raise ConfigurationError("; ".join(faults))
    for fault in faults:
        record_error(ErrorCode.UNKNOWN_HOST, fault)
    return tuple(good)


def gossip_settings(
    context: Context, system: Resolver, record_error: Callable[[int, str], None]
) -> GossipSettings:
    """Return the driver name resolver's settings. If the interface is a host name, its address is
    looked up.
    """
    name, interface = context.resolver_name, context.resolver_interface
    if not name or not interface:
        raise ConfigurationError(
            f"{_NAME_SETTING} and {_INTERFACE_SETTING} are required when "
            f"AERON_NAME_RESOLVER_SUPPLIER is {DRIVER}"
        )
    if len(encode_name(name)) > resolution.NAME_LENGTH_MAX:
        raise ConfigurationError(
            f"{_NAME_SETTING}={name[:40]}...: expected at most {resolution.NAME_LENGTH_MAX} bytes"
        )
    try:
        parsed = parse_interface(_INTERFACE_SETTING, interface)
    except InvalidChannelError as error:
        raise ConfigurationError(str(error)) from error
    if parsed.host is None:
        raise ConfigurationError(f"{_INTERFACE_SETTING}={interface}: expected host:port")
    host, scope_id = system.resolve(parsed.host, _INTERFACE_SETTING)
    return GossipSettings(
        name=name,
        interface=SocketAddress(host, parsed.port, scope_id),
        bootstrap=parse_bootstrap_neighbors(context.resolver_bootstrap_neighbor, record_error),
        mtu_length=context.mtu_length,
        neighbor_timeout_ms=context.resolver_neighbor_timeout_ns // NS_PER_MS,
        self_resolution_interval_ms=context.resolver_self_resolution_interval_ns // NS_PER_MS,
        neighbor_resolution_interval_ms=(
            context.resolver_neighbor_resolution_interval_ns // NS_PER_MS
        ),
        bootstrap_resolution_interval_ms=(
            context.resolver_bootstrap_neighbor_resolution_interval_ns // NS_PER_MS
        ),
    )


def make_name_resolver(
    context: Context,
    system: Resolver,
    manager: CountersManager,
    values: np.ndarray,
    clock: Clock,
    record_error: RecordError,
) -> NameResolver:
    """Create the driver's name resolver. In INVOKER mode the resolver is synchronous."""
    is_threaded = context.threading_mode != INVOKER
    commands = Lookups(system, clock, is_threaded=is_threaded, workers_max=COMMAND_WORKERS_MAX)
    background = Lookups(system, clock, is_threaded=is_threaded, workers_max=BACKGROUND_WORKERS_MAX)
    supplier = supplier_of(context.name_resolver)
    names: NameSource
    if supplier == CSV_TABLE:
        names = CsvTable(parse_table(context.name_resolver_init_args), manager, values)
    elif supplier == DRIVER:
        settings = gossip_settings(context, system, record_error)
        options = SocketOptions(
            sndbuf_length=context.socket_sndbuf_length, rcvbuf_length=context.socket_rcvbuf_length
        )
        socket = UdpResolverSocket(settings.interface, options)
        names = DriverNameResolver(
            settings, socket, background, manager, values, record_error, clock.now_ns()
        )
    else:
        names = EmptyNameSource()
    return NameResolver(
        names, system, commands, background, values, clock, context.name_resolver_threshold_ns
    )
