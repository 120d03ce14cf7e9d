"""The receiver: dispatches datagrams to images; sends status messages and NAKs."""
