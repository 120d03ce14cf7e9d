"""Client conductor: sends commands, handles responses and owns the resources of a client."""
