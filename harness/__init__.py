"""Build a world of hosts and links, disturb it, watch it, judge it.

The rooms, from the ground up; a room may use only what lies below it:

    cli                 the command line
    orchestrate         the only room that starts processes, namespaces and containers
    verdict             pure functions of what a run left behind
    capture             which packets and counters are recorded
    middlebox           the fault rules and the relay that applies them
    topology, dissect   who talks to whom; the judge's own reading of bytes
    scenario, artifact  what a run is asked to do; what it leaves behind
    kernel              the harness's own door to machine code

`workload` runs inside a host and is the one room that uses `driver`; nobody imports it.
"""
