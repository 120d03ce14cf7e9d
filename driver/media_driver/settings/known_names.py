"""Names of Aeron variables that the driver does not use, to detect misspelt settings.

A variable with the prefix AERON_ belongs to the driver or to another Aeron program, or is misspelt.
Variables of clients, archive and cluster are accepted, since all programs share the environment.
Settings that only native code can implement are refused, not ignored. Source: the C sources and the
Java properties of Aeron 1.53.
"""

import difflib
from collections.abc import Collection

PREFIX = "AERON_"
HINT_LIKENESS = 0.6
SLIP_LIKENESS = 0.9
"""Similarity ratio, from 0 to 1, above which a name counts as a misspelling of another name."""

ALIASES = {
    "AERON_NAME_RESOLVER_THRESHOLD": "AERON_DRIVER_NAME_RESOLVER_THRESHOLD",
    "AERON_UNICAST_FLOW_CONTROL_STRATEGY": "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
    "AERON_MULTICAST_FLOW_CONTROL_STRATEGY": "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
}
"""Maps variables derived from Java properties to the equivalent variable of the C driver."""

NATIVE_ONLY = {
    "AERON_AGENT_ON_START_FUNCTION": "",
    "AERON_DRIVER_DYNAMIC_LIBRARIES": "",
    "AERON_DRIVER_CPUSET_AFFINITY": "false",
    "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA": "default",
    "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA": "default",
}
"""Maps each variable that only the native driver supports to the one value accepted here."""

_FOREIGN_PREFIXES = (
    "AERON_AGENT_",
    "AERON_ARCHIVE_",
    "AERON_BUILD_",
    "AERON_CLUSTER_",
    "AERON_DEBUG_",
    "AERON_ECHO_",
    "AERON_EVENT_",
    "AERON_LOG_INSPECTOR_",
    "AERON_SAMPLE",
    "AERON_SECURITY_",
    "AERON_STRESS_",
    "AERON_TEST_",
    "AERON_TRANSPORT_SECURITY_",
)

_FOREIGN = frozenset(
    {
        "AERON_ALL_JAR",
        "AERON_CLIENT_CLOSE_LINGER_DURATION",
        "AERON_CLIENT_IDLE_SLEEP_DURATION",
        "AERON_CLIENT_NAME",
        "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY",
        "AERON_CLIENT_RESOURCE_LINGER_DURATION",
        "AERON_DRIVER_ASYNC_EXECUTOR_CPU_AFFINITY",
        "AERON_DRIVER_ASYNC_EXECUTOR_THREADS",
        "AERON_DRIVER_CPUSET_WARNINGS_AS_ERRORS",
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_CPU_AFFINITY",
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY",
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY_INIT_ARGS",
        "AERON_FALLBACK_LOGGER",
        "AERON_FLOW_CONTROL_SM_APPLICATIONSPECIFICFEEDBACK",
        "AERON_HIDE_DEPRECATION_MESSAGE",
        "AERON_NAME_RESOLVER_CSV_LOOKUP_TABLE_ARGS",
        "AERON_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY",
        "AERON_PREFERREDMULTICASTFLOWCONTROL_ASF",
        "AERON_PRE_TOUCH_MAPPED_MEMORY",
        "AERON_RECEIVECHANNELENDPOINT_SUPPLIER",
        "AERON_SECURE_RANDOM_ALGORITHM",
        "AERON_SENDCHANNELENDPOINT_SUPPLIER",
        "AERON_USE_WINDOWS_HIGH_RES_TIMER",
    }
)
"""Accepted variables of other Aeron programs, and of the C driver's agents that do not exist
here."""


def is_foreign(variable: str) -> bool:
    """Return whether an environment variable belongs to another Aeron program."""
    return variable in _FOREIGN or variable.startswith(_FOREIGN_PREFIXES)


def unknown_faults(
    variables: Collection[str], own: Collection[str], shared: Collection[str] = ()
) -> list[str]:
    """Return an error message for each unknown variable with the prefix AERON_.

    The variables in `shared` are from the environment and may belong to other programs. They are
    reported only if they look like a misspelling of a known variable.
    """
    known = {*own, *_FOREIGN, *ALIASES, *NATIVE_ONLY}
    faults = []
    for variable in sorted(variables):
        if not variable.startswith(PREFIX) or variable in known or is_foreign(variable):
            continue
        likeness = SLIP_LIKENESS if variable in shared else HINT_LIKENESS
        near = difflib.get_close_matches(variable, sorted(known), 1, likeness)
        if variable in shared and not near:
            continue
        hint = f"; did you mean {near[0]}?" if near else ""
        faults.append(f"{variable} is not an Aeron setting{hint}")
    return faults


def native_only_faults(variable: str, text: str) -> list[str]:
    """Return an error message if a variable that only Aeron's C driver supports is set to a value
    other than its default.
    """
    harmless = NATIVE_ONLY[variable]
    if text == harmless or (harmless == "false" and text.lower() in ("0", "off", "false")):
        return []
    bound = f"expected {harmless!r}" if harmless else "it must not be set"
    return [f"{variable} is {text}, which only the native driver supports: {bound}"]
