"""The applications of a run: publishers, subscribers, archive clients, and a saboteur for tests.

    publisher    plan + payload --offer--> driver
    subscriber   driver --whole messages--> application --> messages.bin, index.bin
                        --every frame-----> tap ----------> frames.bin
    saboteur     makes a sound subject misbehave from outside, to check that the judge detects it

Workloads run inside a host as part of the subject, so this is the only package of the harness that
uses the driver's client. The judge evaluates their files. Not supported: several publishers or
images of one stream.
"""
