"""The only room with side effects: it builds a lab, starts processes in it and takes it down again.

    runner.py       from scenario files to the end of a suite
    matrix.py       from peers and scenario files to the end of a matrix of suites
    pool.py         one run after the other, or several at once in processes of their own
    worker.py       such a process
    one_run.py      one run: lab, phases, judge; every way out tidies up
    suite.py        the orders of a suite's runs, and what came of them
    phases.py       the phases of one run; traffic.py and watch.py wait in them
    subject.py      the command lines of everything that is started
    peers.py        the drivers that can be tested, by name
    lab.py          what any lab can do; labs.py chooses one
    namespaces.py   the lab made of network namespaces; privileges.py: who may make them
    containers.py   the lab made of containers; at_hand.py: its kernels, compiled beforehand
    process.py      processes of this machine
    nursery.py      processes of our programs, forked from interpreters that are warm: zygote.py
    state.py        what a lab is about to change; clean.py and keeper.py undo it

Not covered here: what is right or wrong (windtunnel.harness.verdict) and what a datagram means
(windtunnel.harness.dissect).
"""
