"""The command line: one module a command, and what they share.

    root.py         the command group, the one place that turns an error into an exit code
    exit_code.py    the numbers
    failure.py      errors of the rooms below -> one line and a number
    scenarios.py    names of scenarios -> files
    machine.py      what this machine has: the facts behind `doctor` and the default fidelity
    display.py      live progress on a terminal, plain lines in a pipe
    verdict_text.py one line a run, one line a finding
    run, list, explain, judge, doctor, clean, decisions, report     the commands for runs
    look.py         how the tools look into a driver: once, live, as JSON
    table.py        what a tool shows, as plain text and as a picture
    time_text.py    times of a driver's files
    stat, streams, backlog, loss, errors, logbuffer, driver_info    the tools
    analyze                                                         what captures tell
    bench, bench_table                                              our driver beside real Aeron's

Heavy rooms (numba, pydantic, scapy, rich) are imported inside the functions that need them, so that
`windtunnel --help` answers at once; a test watches over that. No judgement is made here.
"""
