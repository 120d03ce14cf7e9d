"""A live lab: a run whose applications, links and events a program controls while it lasts."""
