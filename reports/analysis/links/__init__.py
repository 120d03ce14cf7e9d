"""Streams captured at several vantage points: loss, copies, order and delay of each link."""
