"""Our driver and the real C driver under the same loads, by turns, and how they compare.

    plan.py        what is measured, and on which channels
    subject.py     the two drivers: command line and environment of each
    c_driver.py    the process of the real one
    host.py        one driver running: start-up time, processor time, memory
    loads.py       the load generators of one measurement
    measure.py     one measurement: a reading, or why there is none
    rounds.py      ours, C, ours, C, ... until every round is done
    figures.py     medians, ratios, floors
    machine.py     what this machine is, and how busy
    document.py    all of it as one JSON document

Both drivers get the same client, ours, so that a ratio compares drivers. A reading counts only if
every message arrived and in order; nothing is compiled while it is taken. Refuses to judge what a
figure is good for: floors are the caller's.
"""
