"""Compiles kernels (numba functions) to machine code, and caches the compiled kernels on
disk.

    jit             the decorators
    native_kernel   a kernel as Python calls it, from the cache or compiled by numba
    native_runtime  loads images and selects them by argument types, without numba
    kernel_image    from an object file to an image that needs no linker
    kernel_store    the stored images of one kernel
    dispatcher      compiles a kernel and its callees as one unit, with numba
    cache           directories of stored kernels, and which of them are trusted
    processor       the processor that kernels are compiled for
    sources         the digest of a module and of everything that it imports

The packages driver, harness and reports use this package, which imports none of them.
"""
