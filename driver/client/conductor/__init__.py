"""The client conductor, which sends commands, handles responses and owns a client's resources."""
