"""An atomic compare-and-swap operation on a live driver's memory.

The operation is a full memory barrier. If the JIT is disabled, a non-atomic version replaces it,
which is safe only for memory that is not shared.
"""

from typing import Any

from windtunnel.driver.kernels.jit import JIT_DISABLED, Deferred, kernel


def _make_locked() -> Any:
    from numba.core import types
    from numba.core.errors import TypingError
    from numba.extending import intrinsic

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place, old, new = (
            context.cast(builder, value, kind, types.int64)
            for value, kind in zip(arguments[1:], signature.args[1:], strict=True)
        )
        pointer = builder.gep(array.data, [place])
        return builder.extract_value(builder.cmpxchg(pointer, old, new, "seq_cst"), 1)

    def locked(typing_context: Any, words: Any, index: Any, expected: Any, desired: Any) -> Any:
        if not isinstance(words, types.Array) or words.dtype != types.int64 or not words.mutable:
            raise TypingError(f"expected a writable int64 array, found {words}")
        return types.boolean(words, index, expected, desired), generate

    return intrinsic(locked)


def _plain(words: Any, index: int, expected: int, desired: int) -> bool:
    if words[index] != expected:
        return False
    words[index] = desired
    return True


_swap: Any = _plain if JIT_DISABLED else Deferred(_make_locked)


@kernel
def compare_and_swap(words: Any, index: int, expected: int, desired: int) -> bool:
    """Atomically replace the word at `index` if it equals `expected`. Returns whether it did.

    Shapes:  words int64[n], 0 <= index < n, in memory that may be shared
    Memory:  sequentially consistent
    """
    return bool(_swap(words, index, expected, desired))
