"""Files that other processes can change meanwhile: opened safely, mapped, and protected from
truncation.
"""
