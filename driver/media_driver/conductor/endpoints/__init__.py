"""Channel endpoints as the conductor keeps them for sender and receiver."""
