"""Streams captured at several vantage points: loss, copies, reordering and delay of each link."""
