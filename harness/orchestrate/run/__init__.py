"""The execution of one run: specification, phases, traffic and events."""
