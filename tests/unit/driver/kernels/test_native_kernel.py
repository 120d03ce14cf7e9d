"""A kernel runs from its stored image without numba, with the same results as under numba."""

import enum
import itertools
import os
import subprocess
import sys
import threading
from collections import namedtuple

import numpy as np
import pytest

from windtunnel.driver.kernels import kernel_image, native_runtime
from windtunnel.driver.kernels.jit import JIT_DISABLED, compile_for, kernel
from windtunnel.driver.kernels.kernel_image import ImageError, unpack
from windtunnel.driver.kernels.sources import SOURCE_ROOT

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled without the JIT")

Pair = namedtuple("Pair", "first second")
Other = namedtuple("Other", "first second")
RECORD = np.dtype([("low", "<i4"), ("high", "<i8")])


def adder_of(summand):
    @kernel
    def added(value):
        return value + summand

    return added


class Color(enum.IntEnum):
    RED = 1


class Size(enum.IntEnum):
    LARGE = 1


def readonly(array):
    array.flags.writeable = False
    return array


BYTES = np.zeros(24, np.uint8)
ALIGNED = np.dtype([("a", "i4"), ("b", "i8")], align=True)
LAID_OUT_ALIKE = np.dtype(
    {"names": ["a", "b"], "formats": ["i4", "i8"], "offsets": [0, 8], "itemsize": 16}
)
assert ALIGNED == LAID_OUT_ALIKE
VALUES = [
    *(7, -1, True, 1.5, None, np.int32(1), np.int64(1), np.uint8(1), np.float32(1), np.bool_(True)),
    *(Color.RED, Size.LARGE, BYTES, BYTES[::2], readonly(np.zeros(3, np.uint8)), BYTES[1:9]),
    *(BYTES[1:17].view(np.int64), np.zeros(3), np.zeros(3, np.int64)),
    *(np.zeros((2, 2)), np.zeros((2, 2), order="F"), np.zeros((4, 4))[::2, ::2], np.zeros(())),
    *(np.zeros(2, RECORD), np.zeros(2, RECORD).view(np.recarray), np.zeros(2, RECORD)[0]),
    *(np.zeros(2, np.dtype(RECORD.descr, align=True)), np.zeros(2, bool)),
    *(np.zeros(2, ALIGNED), np.zeros(2, LAID_OUT_ALIKE)),
    *((), (1,), (1, 2.0), (BYTES, 1), Pair(1, 2), Pair(1, BYTES), Other(1, 2), Pair(Pair(1, 2), 1)),
]


def test_values_with_one_key_have_one_numba_type():
    import numba

    keyed = [(native_runtime.key_of(each), numba.typeof(each)) for each in VALUES]
    assert None not in [key for key, _ in keyed]
    for (key, kind), (other_key, other_kind) in itertools.combinations(keyed, 2):
        assert key != other_key or kind == other_kind
    assert len({key for key, _ in keyed}) > 25


@pytest.mark.parametrize(
    "value", ["text", b"bytes", [1], {1: 2}, len, 1j, (1, "text"), Pair(1, [])]
)
def test_other_values_have_no_key(value):
    assert native_runtime.key_of(value) is None


def test_each_type_of_an_argument_has_a_specialization_of_its_own():
    @kernel
    def doubled(value):
        return value + value

    assert [doubled(each) for each in (3, 1.5, np.int32(4), True)] == [6, 3.0, 8, 2]
    assert doubled.signatures == ["int64", "float64", "int32", "bool"]
    assert doubled(5) == 10


def test_defaults_and_keywords_are_folded():
    @kernel
    def scaled(value, factor=3, summand=1):
        return value * factor + summand

    assert (scaled(2), scaled(2, 4), scaled(2, summand=5), scaled(value=2)) == (7, 9, 11, 7)
    assert scaled.signatures == ["int64\nint64\nint64"]


def test_a_wrong_number_of_arguments_is_an_error():
    @kernel
    def one(value):
        return value

    with pytest.raises(TypeError):
        one()
    with pytest.raises(TypeError):
        one(1, 2)


def test_arrays_records_and_tuples_are_passed_and_returned():
    @kernel
    def summed(pair, records):
        total = pair.first
        for index in range(records.size):
            total += records[index].high
        pair.second[0] = total
        return total, records.size

    records = np.zeros(3, RECORD)
    records["high"] = (1, 2, 3)
    target = np.zeros(1, np.int64)
    assert summed(Pair(10, target), records) == (16, 3)
    assert target[0] == 16


def test_a_kernel_bound_to_its_types_does_not_determine_them_again():
    @kernel
    def summed(pair, summand):
        return pair.first + pair.second[0] + summand

    pair = Pair(10, np.ones(1, np.int64))
    bound = compile_for(summed, (pair, 0))
    # A value that has another type of its own, but converts to the type of the specialization.
    assert [bound(pair, each) for each in (1, 2, True)] == [12, 13, 12]
    assert len(summed.signatures) == 1
    with pytest.raises(TypeError):
        bound(pair)


def test_an_integer_beyond_64_bits_is_an_error():
    @kernel
    def same(value):
        return value

    assert same(1) == 1
    with pytest.raises(OverflowError):
        same(1 << 63)


def test_threads_that_call_at_once_load_one_specialization():
    @kernel
    def shared(value):
        return value + 1

    barrier = threading.Barrier(8)
    results = []

    def call():
        barrier.wait()
        results.append(shared(1))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [2] * 8
    assert len(shared.signatures) == 1


def test_a_function_as_an_argument_is_left_to_numba():
    import numba

    @numba.njit
    def increment(value):
        return value + 1

    @kernel
    def applied(function, value):
        return function(value)

    assert applied(increment, 1) == 2
    assert applied.signatures == []


WARM = """
import sys
import numpy as np
from windtunnel.driver.base import atomics
from windtunnel.driver.wire import setup
buf = np.zeros(64, np.uint8)
atomics.put_i64(buf, 8, -7)
assert atomics.get_i64(buf, 8) == -7
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numba", "llvmlite"}))
from numba import njit
assert njit(lambda value: value + 1)(1) == 2
assert njit(atomics.get_i64.py_func)(buf, 8) == atomics.get_i64(buf, 8) == -7
"""


def test_a_stored_kernel_needs_no_numba_which_can_be_imported_later():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", WARM], capture_output=True, text=True, check=True, env=os.environ
        ).stdout
        for _ in range(2)
    ]
    assert outputs[1] == "\n"


def test_an_image_is_the_same_after_packing():
    @kernel
    def checked(value):
        if value < 0:
            raise ValueError("expected a value from 0")
        return value

    image = checked.numba_dispatcher.compile_image((1,))
    key, again = unpack(image.pack("int64"))
    assert key == "int64"
    assert (again.code, again.entry) == (image.code, image.entry)
    assert again.fixups.tolist() == image.fixups.tolist()
    assert (again.imports, again.environments) == (image.imports, image.environments)
    entry = native_runtime.entry_point(again, "checked", sys.modules[__name__])
    assert entry(5) == 5
    with pytest.raises(ValueError, match="expected a value from 0"):
        entry(-1)


def test_an_undefined_symbol_is_an_error():
    image = kernel_image.KernelImage(bytes(16), 0, np.array([], np.int64), {"no_such": [0]}, [])
    with pytest.raises(ImageError, match="no_such"):
        native_runtime.entry_point(image, "none", sys.modules[__name__])


def test_an_object_file_without_the_entry_is_an_error():
    @kernel
    def same(value):
        return value

    dispatcher = same.numba_dispatcher
    dispatcher.compile_image((1,))
    (compiled,) = dispatcher.overloads.values()
    with pytest.raises(ImageError, match="does not define no_such_function"):
        kernel_image.from_object(compiled.library.object_code(), "no_such_function")


@pytest.mark.full
def test_captured_values_are_not_mixed_up_by_the_cache():
    program = """
import sys
from windtunnel.driver.kernels.jit import kernel
from tests.unit.driver.kernels.test_native_kernel import adder_of
print(adder_of(int(sys.argv[1]))(1))
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program, str(summand)],
            capture_output=True, text=True, check=True, cwd=SOURCE_ROOT,
        ).stdout
        for summand in (1, 2)
    ]  # fmt: skip
    assert outputs == ["2\n", "3\n"]
