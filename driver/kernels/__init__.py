"""Compilation of kernels to machine code, and the cache of compiled kernels on disk.

    jit        the decorators
    cache      where compiled kernels are stored, and which directories are trusted
    sources    the digest of a module and of everything that it imports

Driver, harness and reports use this package; it imports none of them.
"""
