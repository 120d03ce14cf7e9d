"""Exercises whose peers are scripts that write and read frames themselves."""
