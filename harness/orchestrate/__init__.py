"""The part of the harness that has side effects: it builds labs, runs processes in the labs, and
removes the labs.

    suite/        suites and matrices of runs, sequential or parallel
    run/          one run: specification, phases, traffic and events
    subjects/     the drivers under test, by name and as command lines
    labs/         network namespaces, containers and the simulator as labs
    precompile/   kernels for containers, compiled before a lab exists
    teardown/     the record of what a lab changes on the machine, and its removal
    processes/    starting, forking, watching, signalling and reaping processes
    lab.py        the interface of all labs; fidelity.py: the names of the labs
    swarm.py      starts the process that simulates a swarm
    event.py      progress events for the caller; cancel.py: signals as an exception

Imports go downwards: suite, run, labs, then teardown and precompile, then processes. Verdicts are
made in windtunnel.harness.verdict, and datagrams are parsed in windtunnel.harness.dissect.
"""
