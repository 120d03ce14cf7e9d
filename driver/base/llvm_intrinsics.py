"""LLVM code of the loads, stores, fences and atomics in `intrinsics`.

This module is imported only to compile a kernel, because it imports numba. Types are checked at
compile time: only a contiguous one-dimensional uint8 array is accepted, and a store into a
read-only array is rejected, because it would cause a segmentation fault at run time.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, lower_builtin, type_callable
from numba.np import arrayobj

_BITS = {"u8": 8, "u16": 16, "i32": 32, "i64": 64}


def _require_bytes(array, writable):
    good = isinstance(array, types.Array) and array.dtype == types.uint8 and array.ndim == 1
    if not good or array.layout != "C":
        raise TypingError(f"expected a contiguous uint8 array, found {array}")
    if writable and not array.mutable:
        raise TypingError("cannot store into a read-only array")


def _pointer(context, builder, array_type, array, at, at_type, bits):
    data = context.make_array(array_type)(context, builder, array).data
    offset = context.cast(builder, at, at_type, types.intp)
    return builder.bitcast(builder.gep(data, [offset]), ir.IntType(bits).as_pointer())


def _widen(builder, value, kind):
    if _BITS[kind] == 64:
        return value
    extend = builder.sext if kind.startswith("i") else builder.zext
    return extend(value, ir.IntType(64))


def _narrow(context, builder, value, value_type, kind):
    wide = context.cast(builder, value, value_type, types.int64)
    return wide if _BITS[kind] == 64 else builder.trunc(wide, ir.IntType(_BITS[kind]))


def _make_load(kind, ordering):
    bits = _BITS[kind]

    def load(typingctx, buf, at):
        _require_bytes(buf, writable=False)

        def codegen(context, builder, signature, args):
            pointer = _pointer(
                context, builder, signature.args[0], args[0], args[1], signature.args[1], bits
            )
            if ordering is None:
                value = builder.load(pointer, align=1)
            else:
                value = builder.load_atomic(pointer, ordering, bits // 8)
            return _widen(builder, value, kind)

        return types.int64(buf, at), codegen

    return intrinsic(load)


def _make_store(kind, ordering):
    bits = _BITS[kind]

    def store(typingctx, buf, at, value):
        _require_bytes(buf, writable=True)

        def codegen(context, builder, signature, args):
            pointer = _pointer(
                context, builder, signature.args[0], args[0], args[1], signature.args[1], bits
            )
            narrow = _narrow(context, builder, args[2], signature.args[2], kind)
            if ordering is None:
                builder.store(narrow, pointer, align=1)
            else:
                builder.store_atomic(narrow, pointer, ordering, bits // 8)
            return context.get_dummy_value()

        return types.void(buf, at, value), codegen

    return intrinsic(store)


def _make_compare_and_set(kind):
    bits = _BITS[kind]

    def compare_and_set(typingctx, buf, at, expected, desired):
        _require_bytes(buf, writable=True)

        def codegen(context, builder, signature, args):
            pointer = _pointer(
                context, builder, signature.args[0], args[0], args[1], signature.args[1], bits
            )
            old = _narrow(context, builder, args[2], signature.args[2], kind)
            new = _narrow(context, builder, args[3], signature.args[3], kind)
            result = builder.cmpxchg(pointer, old, new, "seq_cst", "seq_cst")
            return builder.extract_value(result, 1)

        return types.boolean(buf, at, expected, desired), codegen

    return intrinsic(compare_and_set)


def _make_fetch_add(kind):
    bits = _BITS[kind]

    def fetch_add(typingctx, buf, at, delta):
        _require_bytes(buf, writable=True)

        def codegen(context, builder, signature, args):
            pointer = _pointer(
                context, builder, signature.args[0], args[0], args[1], signature.args[1], bits
            )
            change = _narrow(context, builder, args[2], signature.args[2], kind)
            return _widen(builder, builder.atomic_rmw("add", pointer, change, "seq_cst"), kind)

        return types.int64(buf, at, delta), codegen

    return intrinsic(fetch_add)


@intrinsic
def _move(typingctx, target, target_at, source, source_at, length):
    _require_bytes(target, writable=True)
    _require_bytes(source, writable=False)

    def codegen(context, builder, signature, args):
        kinds = signature.args
        to = _pointer(context, builder, kinds[0], args[0], args[1], kinds[1], 8)
        origin = _pointer(context, builder, kinds[2], args[2], args[3], kinds[3], 8)
        count = context.cast(builder, args[4], kinds[4], types.intp)
        cgutils.raw_memmove(builder, to, origin, count, itemsize=1)
        return context.get_dummy_value()

    return types.void(target, target_at, source, source_at, length), codegen


@intrinsic
def _fill_zero(typingctx, target, target_at, length):
    _require_bytes(target, writable=True)

    def codegen(context, builder, signature, args):
        kinds = signature.args
        to = _pointer(context, builder, kinds[0], args[0], args[1], kinds[1], 8)
        count = context.cast(builder, args[2], kinds[2], types.intp)
        cgutils.memset(builder, to, count, 0)
        return context.get_dummy_value()

    return types.void(target, target_at, length), codegen


def _make_prefetch(is_write):
    def prefetch(typingctx, buf, at):
        _require_bytes(buf, writable=is_write)

        def codegen(context, builder, signature, args):
            kinds = signature.args
            line = _pointer(context, builder, kinds[0], args[0], args[1], kinds[1], 8)
            integer = ir.IntType(32)
            function = builder.module.declare_intrinsic(
                "llvm.prefetch",
                [line.type],
                ir.FunctionType(ir.VoidType(), [line.type, integer, integer, integer]),
            )
            is_kept_in_caches, is_data = integer(3), integer(1)
            builder.call(function, [line, integer(int(is_write)), is_kept_in_caches, is_data])
            return context.get_dummy_value()

        return types.void(buf, at), codegen

    return intrinsic(prefetch)


def _make_fence(ordering):
    def fence_of(typingctx):
        def codegen(context, builder, signature, args):
            builder.fence(ordering)
            return context.get_dummy_value()

        return types.void(), codegen

    return intrinsic(fence_of)


def bytes_at(address, length):
    """Declare `bytes_at` for compiled kernels, in which numba replaces each call with the code that
    `_lower_bytes_at` generates. Python code never calls this function.
    """
    raise NotImplementedError


_BYTES = types.Array(types.uint8, 1, "C")


@type_callable(bytes_at)
def _type_bytes_at(context):
    def typer(address, length):
        if isinstance(address, types.Integer) and isinstance(length, types.Integer):
            return _BYTES
        return None

    return typer


@lower_builtin(bytes_at, types.Integer, types.Integer)
def _lower_bytes_at(context, builder, signature, args):
    """Generate LLVM code that makes an array from an address and a length. The array has no
    reference count.
    """
    wide = context.cast(builder, args[0], signature.args[0], types.intp)
    length = context.cast(builder, args[1], signature.args[1], types.intp)
    array = arrayobj.make_array(_BYTES)(context, builder)
    one = context.get_constant(types.intp, 1)
    arrayobj.populate_array(
        array,
        data=builder.inttoptr(wide, cgutils.voidptr_t),
        shape=[length],
        strides=[one],
        itemsize=one,
        meminfo=None,
    )
    return array._getvalue()


load_of = {(kind, order): _make_load(kind, order) for kind in _BITS for order in (None, "acquire")}
store_of = {
    (kind, order): _make_store(kind, order) for kind in _BITS for order in (None, "release")
}
compare_and_set_of = {kind: _make_compare_and_set(kind) for kind in ("i32", "i64")}
fetch_add_of = {kind: _make_fetch_add(kind) for kind in ("i32", "i64")}
move, fill_zero = _move, _fill_zero
prefetch_of = {is_write: _make_prefetch(is_write) for is_write in (False, True)}
fence_of = {ordering: _make_fence(ordering) for ordering in ("acquire", "release", "seq_cst")}
