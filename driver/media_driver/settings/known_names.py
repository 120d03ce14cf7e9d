"""Which variables of Aeron there are besides the driver's own, so that a slip of the pen is found.

A variable that begins with AERON_ is the driver's, somebody else's, or a mistake. Somebody else's
pass: clients, archive and cluster are told by the same environment. What only native code could
do is refused, because a driver that ignores it would not be the one that was asked for.
Source: the C sources and the Java properties of Aeron 1.53.
"""

import difflib
from collections.abc import Collection

PREFIX = "AERON_"
HINT_LIKENESS = 0.6
SLIP_LIKENESS = 0.9
"""How alike two names are, from 0 to 1, when one is taken for the other misspelt."""

ALIASES = {
    "AERON_NAME_RESOLVER_THRESHOLD": "AERON_DRIVER_NAME_RESOLVER_THRESHOLD",
    "AERON_UNICAST_FLOW_CONTROL_STRATEGY": "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
    "AERON_MULTICAST_FLOW_CONTROL_STRATEGY": "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
}
"""What a Java property comes to, and the variable of the C driver that means the same."""

NATIVE_ONLY = {
    "AERON_AGENT_ON_START_FUNCTION": "",
    "AERON_DRIVER_DYNAMIC_LIBRARIES": "",
    "AERON_DRIVER_CPUSET_AFFINITY": "false",
    "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA": "default",
    "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA": "default",
}
"""Variables that this driver cannot follow, and the one value that asks for nothing."""

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
"""There is no native resource agent and no executor here, so their settings change nothing."""


def is_foreign(variable: str) -> bool:
    """Whether the variable is somebody else's."""
    return variable in _FOREIGN or variable.startswith(_FOREIGN_PREFIXES)


def unknown_faults(
    variables: Collection[str], own: Collection[str], shared: Collection[str] = ()
) -> list[str]:
    """One sentence for each variable that begins like Aeron's and is nobody's.

    `shared` are those of the environment, where other programs may keep variables of their own:
    of them only what looks like a slip of the pen is a fault.
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
        faults.append(f"{variable} is not a setting of Aeron{hint}")
    return faults


def native_faults(variable: str, text: str) -> list[str]:
    """What is wrong with a variable of `NATIVE_ONLY`."""
    harmless = NATIVE_ONLY[variable]
    if text == harmless or (harmless == "false" and text.lower() in ("0", "off", "false")):
        return []
    bound = f"only {harmless!r} is possible" if harmless else "it must not be set"
    return [f"{variable} is {text}, but this driver cannot load or follow that: {bound}"]
