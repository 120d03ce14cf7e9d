"""Applications of a scenario: programs of the user that run on its hosts."""
