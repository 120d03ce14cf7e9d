"""The receiver agent: dispatches datagrams to images, sends status messages and NAKs."""
