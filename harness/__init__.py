"""The test harness: builds hosts and links, applies faults, records each run and judges it.

The main layers, top to bottom; a package may import only packages on lower lines:

    cli                 the command line
    orchestrate         starts and stops processes, namespaces and containers; nothing else does
    verdict             pure functions of the files that a run has written
    capture, inspect    packet captures and counter samples; a driver's files
    middlebox           the fault rules and the relay that applies them
    topology, dissect   addresses and links; independent parsers of Aeron's formats
    scenario, artifact  the description of a run; the files of a run folder

`workload` runs inside a host, `simulator` stands in for hosts, and `fuzz` attacks drivers; only
these three use driver code other than the JIT wrappers in `driver.kernels`.
"""
