"""The conductor agent: executes client commands, owns all resources and tracks liveness."""
