"""Publishers and subscribers that the simulator runs step by step in virtual time."""
