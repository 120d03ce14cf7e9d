"""Streams at several vantage points: losses, copies, order and delay of each link."""
