"""The applications in a run: publishers, subscribers, archive clients, and a process that injects
faults.

    publisher    plan + payload --offer--> driver
    subscriber   driver --whole messages--> application --> messages.bin, index.bin
                        --every frame-----> tap ----------> frames.bin
    saboteur     makes a correct driver seem to misbehave, to check that the judge detects it

Workloads run inside a host as part of the software under test, so this is the only package of the
harness that uses the driver's client. The judge evaluates their files. Several publishers or images
of one stream are not supported.
"""
