"""Our driver and archive and the real ones under the same loads, by turns, and how they compare.

    plan.py        what is measured, and on which channels
    subject.py     the two drivers: command line and environment of each
    c_driver.py    the process of the real one
    host.py        one driver running: start-up time, processor time, memory
    loads.py       the load generators of one measurement
    measure.py     one measurement: a reading, or why there is none
    archive_host.py  the two archives, ours and Java's, and one of them running
    archive.py     one measurement of an archive: recordings and replays by turns
    swarm.py       simulated trials, of our driver alone
    rounds.py      ours, C, ours, C, ... until every round is done
    figures.py     medians, ratios, floors
    machine.py     what this machine is, and how busy
    document.py    all of it as one JSON document

Both drivers get the same client, ours, so that a ratio compares drivers; so do both archives, each
with a media driver of its own beside it, as it is run. A reading counts only if
every message arrived and in order; nothing is compiled while it is taken. Refuses to judge what a
figure is good for: floors are the caller's.
"""
