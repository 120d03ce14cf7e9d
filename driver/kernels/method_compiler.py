"""Compiles the kernels of Python methods (see `python_method`). Importing it imports numba."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock

from windtunnel.driver.kernels import dispatcher, kernel_image
from windtunnel.driver.kernels.kernel_image import KernelImage

_WORD = ir.IntType(64)
_OPTIONS = {"nopython": True, "nogil": True, "_nrt": False}


class MethodLibrary(dispatcher.RootLibrary):
    """The machine code of a Python method, into which all kernels that it calls are inlined.

    Such a method takes a few nanoseconds, of which calls between kernels would be a third.
    """

    entry = ""
    """Name of the function that Python calls."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != self.entry:
                function.linkage = "internal"
                function.add_function_attribute("alwaysinline")
        super()._optimize_final_module()


def compile_method(function: Callable[..., object]) -> KernelImage:
    """Compile the kernel of a Python method, and return its image."""
    compiler = dispatcher.KernelDispatcher(function, targetoptions=_OPTIONS)._compiler
    context = compiler.targetdescr.target_context
    with global_compiler_lock:
        library = MethodLibrary(context.codegen(), function.__qualname__)
        library.enable_object_caching()
        result = compiler._compile(
            (types.intp,) * 4, types.intp, library, no_compile=True, no_cpython_wrapper=True
        )
        library.entry = name = result.fndesc.llvm_cfunc_wrapper_name
        library.add_ir_module(_entry(context, result.fndesc))
        for environment in result._find_referenced_environments():
            if environment.consts:
                raise kernel_image.ImageError(
                    f"{function.__qualname__}: expected no Python objects in compiled code, found "
                    f"{environment.consts}"
                )
        return kernel_image.from_object(library.object_code(), name)


def _entry(context: Any, descriptor: Any) -> ir.Module:
    """Create the function that Python calls, `PyObject *(PyObject *, PyObject *const *, size)`.

    It calls the kernel, and turns an error of the kernel, such as a failed assertion, into an
    exception.
    """
    module = context.create_module("method")
    conventions = context.call_conv
    kind = conventions.get_function_type(descriptor.restype, descriptor.argtypes)
    kernel = ir.Function(module, kind, descriptor.llvm_func_name)
    name = descriptor.llvm_cfunc_wrapper_name
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD] * 4), name)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    status, value = conventions.call_function(
        builder, kernel, descriptor.restype, descriptor.argtypes, entry.args
    )
    with builder.if_then(status.is_error, likely=False):
        conventions.raise_error(builder, context.get_python_api(builder), status)
        builder.ret(_WORD(0))
    builder.ret(value)
    return module
