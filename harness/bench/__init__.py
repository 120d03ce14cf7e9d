"""Benchmarks of our driver and archive against the real ones, under the same loads in alternation.

    plan.py        what is measured, and on which channels
    subject.py     the two drivers: command line and environment of each
    c_driver.py    the process of the real C driver
    host.py        one running driver: start-up time, processor time, memory
    loads.py       the load generators of one measurement
    measure.py     one measurement: a reading, or why it is void
    archive_host.py  the two archives, ours and Java's, and one of them running
    archive.py     one measurement of an archive: recordings and replays in alternation
    swarm.py       simulated trials, of our driver alone
    runs.py        complete runs per minute of a fidelity
    rounds.py      ours, C, ours, C, ... until every round is done
    figures.py     medians, ratios, floors
    machine.py     facts about this machine, and its load
    document.py    everything as one JSON document

Both drivers get the same client, ours, so that a ratio compares drivers; so do both archives, each
with a media driver of its own beside it, as in production. A reading counts only if every message
arrived and in order; nothing is compiled while it is taken. Floors are set by the caller.
"""
