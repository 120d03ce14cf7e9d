"""Attacks the commands that read other people's files: gives them damaged files, and checks that
they end with a documented exit code and touch nothing else.
"""
