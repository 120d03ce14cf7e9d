"""The record of what a lab changes on the machine, written in advance, and its removal."""
