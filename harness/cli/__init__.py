"""The command line: one module for each command, and shared helpers.

    root.py         the command group; converts every error to a message and an exit code
    exit_code.py    the exit codes
    failure.py      errors of lower layers -> one line and an exit code
    scenarios.py    scenario names -> files
    machine.py      probes of this machine, for `doctor` and the default fidelity
    in_kernel.py    runs a command in User Mode Linux
    render/         progress displays, verdict lines and tables
    runs/           commands that make, judge, replay or report on runs
    inspect/        commands that inspect a driver's files, or captures
    bench/          `windtunnel bench`
    doctor, explain, list, clean, from_capture, archive             further commands

Slow imports (numba, pydantic, scapy, rich) are made inside the functions that need them, so that
`windtunnel --help` responds at once; a test checks this. Verdicts are not made in this package.
"""
