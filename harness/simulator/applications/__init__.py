"""Publishers and subscribers that the simulator runs step by step on virtual time."""
