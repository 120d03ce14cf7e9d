"""Compiles each kernel together with everything that it calls, as one compilation unit.

By default, numba compiles each function that a kernel calls as a separate unit: it optimizes the
function, emits machine code, creates wrappers for Python and for C, and stores the result. However,
only the kernels that Python calls need a wrapper. With this module, only these kernels, the roots,
become machine code. A kernel that another kernel calls (an inner kernel) is lowered to LLVM's
intermediate representation and linked into the root. There it is optimized once, together with its
callers, which are known: what it does not use of its arguments is not passed.

    Python calls a kernel   ->  root: optimized, emitted, wrapped, stored in the cache as an image
    a kernel calls a kernel ->  inner: typed and lowered, linked into every root that needs it

Arguments of inner calls lose their literal types, so that `copy(buf, 8)` and `copy(buf, 16)` share
one specialization. LLVM still propagates the constants where it inlines the call.

Source: numba 0.68, `Dispatcher.get_call_template`, `CPUCodeLibrary.finalize`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import compiler, dispatcher, typing
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.types import unliteral

from windtunnel.driver.kernels import kernel_image, processor
from windtunnel.driver.kernels.kernel_image import KernelImage

processor.select(numba.config)


class InnerLibrary(JITCodeLibrary):
    """The LLVM code of an inner kernel, which other kernels call. The code of its own callees is
    not included.
    """

    def add_linking_library(self, library: Any) -> None:
        for each in _with_callees(library):
            if each not in self._linking_libraries:
                super().add_linking_library(each)

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._final_module.verify()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalized = True

    @property
    def module(self) -> Any:
        """The LLVM module of this kernel, without the kernels that it calls."""
        self._ensure_finalized()
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """Return an LLVM module that contains this kernel and all its callees. numba links it into
        functions that are not kernels.
        """
        if self._shared_module is None:
            shared = self.module.clone()
            for library in _callers_first(self._linking_libraries):
                shared.link_in(_module_of(library), preserve=True)
            self._shared_module = shared
        return self._shared_module


def _with_callees(library: Any) -> Iterator[Any]:
    """Yield a library. If it belongs to an inner kernel, also yield the libraries of all kernels
    that it calls.
    """
    yield library
    if isinstance(library, InnerLibrary):
        yield from library._linking_libraries


def _module_of(library: Any) -> Any:
    if isinstance(library, InnerLibrary):
        return library.module
    return library._get_module_for_linking()


def _callers_first(libraries: Iterable[Any]) -> list[Any]:
    """Return libraries in the order in which they must be linked: an inner kernel after all kernels
    that may call it, and other libraries, which contain all that they call, at the end.

    The linker omits a function to which nothing linked so far refers. The first caller need not
    refer to it, because the optimizer removes a call that can never be reached.
    """
    # A caller's libraries are its callees and all of theirs, so it has more of them.
    return sorted(
        libraries,
        key=lambda each: (not isinstance(each, InnerLibrary), -len(each._linking_libraries)),
    )


class RootLibrary(JITCodeLibrary):
    """The machine code of a root kernel, which Python calls, and of all kernels that it calls."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._inner: dict[InnerLibrary, None] = {}

    def add_linking_library(self, library: Any) -> None:
        for each in _with_callees(library):
            if isinstance(each, InnerLibrary):
                self._inner[each] = None
            else:
                super().add_linking_library(each)

    def finalize(self) -> None:
        for library in _callers_first(self._inner):
            self._final_module.link_in(library.module, preserve=True)
        # The inner kernels have no other callers, so LLVM may drop or combine their arguments: most
        # kernels use few of the arrays of a state, which is passed array by array.
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = llvm.Linkage.internal
        super().finalize()

    def object_code(self) -> bytes:
        """Return the compiled code as an ELF object file."""
        self._ensure_finalized()
        found: bytes = self._get_compiled_object()
        return found


_FunctionCompiler: Any = vars(dispatcher)["_FunctionCompiler"]
_make_template: Any = vars(typing)["make_concrete_template"]


class _Compiler(_FunctionCompiler):  # type: ignore[misc]  # numba has no types for it
    """Compiles one function as a root kernel, which Python calls, or as an inner kernel, which
    other kernels call.
    """

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        library = RootLibrary(self.targetdescr.target_context.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()
        result = self._compile(args, return_type, library)
        codegen = library.codegen
        for environment in result._find_referenced_environments():
            codegen.set_env(environment.env_name, environment)
        return result

    def compile_inner(self, args: Any) -> Any:
        codegen = self.targetdescr.target_context.codegen()
        library = InnerLibrary(codegen, self.py_func.__qualname__)
        return self._compile(args, None, library, no_compile=True, no_cpython_wrapper=True)

    def _compile(self, args: Any, return_type: Any, library: Any, **options: bool) -> Any:
        flags: Any = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cfunc_wrapper = True
        for name, value in options.items():
            setattr(flags, name, value)
        target = self.targetdescr
        return compiler.compile_extra(
            target.typing_context, target.target_context, self.py_func, args=args,
            return_type=return_type, flags=flags, locals=self.locals, library=library,
            pipeline_class=self.pipeline_class,
        )  # fmt: skip


class KernelDispatcher(CPUDispatcher):
    """Compiles a kernel for the types of its arguments when it is first called with them."""

    def __init__(
        self, py_func: Callable[..., object], *, is_outlined: bool = False, **options: Any
    ) -> None:
        """`is_outlined` prevents that LLVM replaces a call from another kernel by its code."""
        self._is_outlined = is_outlined
        super().__init__(py_func, **options)
        self._compiler = _Compiler(
            py_func, self.targetdescr, self.targetoptions, self.locals, compiler.Compiler
        )
        self._inner: dict[tuple[Any, ...], tuple[object, Any]] = {}

    def prepare(self, arguments: Sequence[object]) -> None:
        """Compile the kernel for arguments of these types."""
        self.compile(tuple(numba.typeof(each) for each in arguments))

    def compile_image(self, arguments: Sequence[object]) -> KernelImage:
        """Compile the kernel for arguments of these types, and return its image."""
        types = tuple(numba.typeof(each) for each in arguments)
        self.prepare(arguments)
        result: Any = self.overloads[types]
        for environment in result._find_referenced_environments():
            if environment.consts:
                raise kernel_image.ImageError(
                    f"{self.py_func.__qualname__}: expected no Python objects in compiled code, "
                    f"found {environment.consts}"
                )
        name = result.fndesc.llvm_cpython_wrapper_name
        return kernel_image.from_object(result.library.object_code(), name)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template with which numba types a call of this kernel from another kernel."""
        signature, folded = self._compiler.fold_argument_types(args, kws)
        plain = tuple(unliteral(each) for each in folded)
        _, result = self._inner_of(plain)
        name = self.py_func.__name__
        template = _make_template(f"CallTemplate({name})", key=name, signatures=[result.signature])
        return template, signature, plain, {}

    def get_overload(self, sig: Any) -> Any:
        """Return the key by which numba's target context finds the inner kernel for a signature."""
        key, _ = self._inner_of(tuple(normalize_signature(sig)[0]))
        return key

    def _inner_of(self, args: tuple[Any, ...]) -> tuple[object, Any]:
        found = self._inner.get(args)
        if found is None:
            result = self._compiler.compile_inner(args)
            if self._is_outlined:
                function = result.library.module.get_function(result.fndesc.mangled_name)
                function.add_function_attribute("noinline")
            found = (object(), result)
            self.targetctx.insert_user_function(found[0], result.fndesc, [result.library])
            self._inner[args] = found
        return found
