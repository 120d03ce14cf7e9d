"""Commands that repeat a stored run or the losses in a capture, reduce a run, or print its log of
decisions.

    replay        `windtunnel replay`
    recorded_lab  the same for a run that a program controlled
    swarm_trial   the same for a simulated trial
    shrink        `windtunnel shrink`
    recorded_run  validates the folder of a run for both
    decisions     `windtunnel decisions`
    from_capture  `windtunnel from-capture`
"""
