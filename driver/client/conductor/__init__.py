"""The client conductor: commands to the driver, its responses, and the resources that result."""
