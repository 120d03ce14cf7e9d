"""Benchmarks that compare Windtunnel's driver and archive with Aeron's by running them alternately
under equal load.

    plan.py        what is measured, and on which channels
    subject.py     the two drivers: command line and environment of each
    c_driver.py    the process of the real C driver
    host.py        one running driver: start-up time, processor time, memory
    loads.py       the load generators of one measurement
    measure.py     one measurement: a reading, or why it is void
    archive_host.py  the two archives, ours and Java's, and one of them running
    archive.py     one measurement of an archive: recordings and replays in alternation
    swarm.py       simulated trials, of Windtunnel's driver alone
    recovery/      streams on paths with losses, with ours and the real C driver
    runs.py        complete runs per minute of a fidelity
    rounds.py      ours, C, ours, C, ... until every round is done
    figures.py     medians, ratios, floors
    machine.py     facts about this machine, and its load
    document.py    everything as one JSON document

Both drivers are used with our client, so a ratio compares only drivers. Both archives are used with
our client too, and each has its own media driver, as in production. A reading is valid only if
every message arrived in order and nothing was compiled during the measurement. The caller sets the
floors, which are the limits that the ratios must meet.
"""
