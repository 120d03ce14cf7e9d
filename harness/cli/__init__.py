"""The command line: one module per command, and shared helpers.

    root.py         the command group; reports every error as a message and an exit code
    exit_code.py    the exit codes
    failure.py      reports errors of lower layers as one line and an exit code
    scenarios.py    scenario names -> files
    machine.py      checks what this machine has, for `doctor` and the default fidelity
    in_kernel.py    runs a command in User Mode Linux
    render/         progress displays, verdict lines and tables
    runs/           commands that execute, judge or report on runs
    replay/         commands that repeat a stored run or a capture's losses, or reduce a run
    inspect/        commands that inspect a driver's files, or captures
    bench/          `windtunnel bench`
    lab/            `windtunnel lab`
    doctor, explain, list, new, clean, peer, archive                the other commands

Slow imports (numba, pydantic, scapy, rich) are made inside the functions that need them, to keep
`windtunnel --help` fast. A test checks this. This package does not decide verdicts.
"""
