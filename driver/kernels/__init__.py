"""Compilation of kernels to machine code, and the on-disk cache of compiled kernels.

    jit        the decorators
    cache      where compiled kernels are stored, and which directories are trusted
    sources    the digest of a module and of everything that it imports

The packages driver, harness and reports use this package, which imports none of them.
"""
