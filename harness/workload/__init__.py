"""The applications of a run: who publishes the plan, who reads it, and who cheats on order.

    publisher    plan + payload --offer--> driver
    subscriber   driver --whole messages--> application --> messages.bin, index.bin
                        --every frame-----> tap ----------> frames.bin
    saboteur     makes a sound subject misbehave from outside, to see the judge say no

The only room of the harness that uses the driver's client: it runs inside a host, as part of the
subject. Refuses to judge what it sees. Not covered: several publishers or images of one stream.
"""
