"""The part of the harness with side effects: it builds a lab, runs processes in it and removes it.

    suite/        suites and matrices of runs, one after the other or several at once
    run/          one run: its specification, its phases, its traffic, its events
    subjects/     the drivers under test, by name and as command lines
    labs/         network namespaces, containers and the simulator as labs
    precompile/   kernels for containers, compiled before a lab exists
    teardown/     the record of what a lab changes on the machine, and its removal
    processes/    processes: started or forked, watched, signalled and reaped
    lab.py        the interface of every lab; fidelity.py: the names of the labs
    swarm.py      the process of the simulator's swarm
    event.py      progress reports for the caller; cancel.py: signals as an exception

Imports go downwards: suite, run, labs, then teardown and precompile, then processes.
The verdict on a run is in windtunnel.harness.verdict, the meaning of a datagram in
windtunnel.harness.dissect.
"""
