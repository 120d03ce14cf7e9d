"""The conductor: executes client commands, owns every resource, and tracks liveness."""
