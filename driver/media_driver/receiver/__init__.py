"""The receiver agent, which passes datagrams to images and sends status messages and NAKs."""
