"""LLVM code of the calls of Python's C API in `python_api`.

This module is imported only to compile a kernel, because it imports numba. The code refers to
functions and objects by their symbols, so it can be stored in the kernel cache.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np import arrayobj

_WORD = ir.IntType(64)


def c_function(name: str, arguments: tuple[int, ...], result: int) -> Any:
    """Return an intrinsic that calls a C function, whose integers have these lengths in bits. The
    result is an int64, or none for a length of 0.
    """

    def call(*given):
        if not all(isinstance(each, types.Integer) for each in given):
            raise TypingError(f"{name}: expected {len(arguments)} integers, found {given}")

        def codegen(context, builder, signature, values):
            kinds = [ir.IntType(bits) for bits in arguments]
            returned = ir.IntType(result) if result else ir.VoidType()
            declared = ir.FunctionType(returned, kinds)
            function = cgutils.get_or_insert_function(builder.module, declared, name)
            wide = [
                context.cast(builder, value, kind, types.int64)
                for value, kind in zip(values, signature.args, strict=True)
            ]
            narrow = [
                value if kind.width == 64 else builder.trunc(value, kind)
                for value, kind in zip(wide, kinds, strict=True)
            ]
            found = builder.call(function, narrow)
            if not result:
                return context.get_dummy_value()
            return found if result == 64 else builder.sext(found, _WORD)

        return (types.int64 if result else types.void)(*given), codegen

    # numba derives the number of arguments from the function's signature.
    forms = (
        lambda typingctx: call(),
        lambda typingctx, a: call(a),
        lambda typingctx, a, b: call(a, b),
        lambda typingctx, a, b, c: call(a, b, c),
        lambda typingctx, a, b, c, d: call(a, b, c, d),
    )
    return intrinsic(forms[len(arguments)])


def c_object(name: str) -> Any:
    """Return an intrinsic that returns the address of a C object."""

    def address_of(typingctx):
        def codegen(context, builder, signature, values):
            known = builder.module.globals.get(name)
            if known is None:
                known = cgutils.add_global_variable(builder.module, ir.IntType(8), name)
                known.linkage = "external"
            return builder.ptrtoint(known, _WORD)

        return types.int64(), codegen

    return intrinsic(address_of)


def stack_space(length: int) -> Any:
    """Return an intrinsic that returns the address of memory on the stack."""

    def allocate(typingctx):
        def codegen(context, builder, signature, values):
            words = ir.ArrayType(_WORD, length // 8)
            return builder.ptrtoint(cgutils.alloca_once(builder, words), _WORD)

        return types.int64(), codegen

    return intrinsic(allocate)


@intrinsic
def record_at(typingctx, address, dtype):
    """Return the record at an address as an array of length 1, without a reference count."""
    if not isinstance(address, types.Integer) or not isinstance(dtype, types.DType):
        raise TypingError(f"expected an address and a dtype, found {address} and {dtype}")
    array_type = types.Array(dtype.dtype, 1, "C")

    def codegen(context, builder, signature, values):
        wide = context.cast(builder, values[0], signature.args[0], types.intp)
        length = context.get_constant(types.intp, array_type.dtype.size)
        array = arrayobj.make_array(array_type)(context, builder)
        arrayobj.populate_array(
            array,
            data=builder.inttoptr(wide, context.get_data_type(array_type.dtype).as_pointer()),
            shape=[context.get_constant(types.intp, 1)],
            strides=[length],
            itemsize=length,
            meminfo=None,
        )
        return array._getvalue()

    return array_type(address, dtype), codegen
