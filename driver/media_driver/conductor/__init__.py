"""The conductor agent, which executes client commands, owns all resources and tracks liveness."""
