"""Kernels of the caller's own, recorded once and replayed."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import math
import operator
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _native

_open: weakref.WeakSet[Replay] = weakref.WeakSet()


@dataclass(frozen=True)
class Input:
    """A buffer that each batch uploads.

    Attributes:
        shape: The shape of its arrays, or their length.
        dtype: The type of the elements: a NumPy name of an integer or a real, or ``bfloat16``.
        on_device: Whether batches pass arrays on the GPU instead (CuPy, PyTorch, JAX; by DLPack).
            Kernels then use them in place, without a copy.
    """

    shape: int | Sequence[int]
    dtype: str = "float32"
    on_device: bool = False


@dataclass(frozen=True)
class Output:
    """A buffer that each batch downloads.

    Attributes:
        shape: The shape of its arrays, or their length.
        dtype: The type of the elements, as for ``Input``.
        on_device: Whether batches pass arrays on the GPU instead, which the kernels write in place.
    """

    shape: int | Sequence[int]
    dtype: str = "float32"
    on_device: bool = False


@dataclass(frozen=True)
class Scratch:
    """Memory of a batch that stays on the device. Its contents are undefined at first.

    Attributes:
        shape: The shape, or the length.
        dtype: The type of the elements, as for ``Input``.
    """

    shape: int | Sequence[int]
    dtype: str = "float32"


@dataclass(frozen=True)
class Constant:
    """Memory on the device that all batches read, such as weights.

    Attributes:
        array: The contents, an array of the host; they are copied.
    """

    array: Any


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel.

    Attributes:
        kernel: The name of an ``extern "C" __global__`` function in the source.
        args: Its arguments in order: names of buffers for pointers, and numbers.
        grid: Blocks along x, or along x, y and z.
        block: Threads of a block along x, or along x, y and z; None for what the kernel's
            ``__launch_bounds__`` says, or 128.
        shared_bytes: Dynamic shared memory of a block in bytes.
    """

    kernel: str
    args: Sequence[str | int | float]
    grid: int | Sequence[int] = 1
    block: int | Sequence[int] | None = None
    shared_bytes: int = 0


class Job:
    """A batch that was submitted. ``await job`` gives its results too. ``Replay.submit`` returns it.

    If it is dropped before, the results are dropped.
    """

    def __init__(self, replay: Replay, number: int, given: Mapping[str, Any]) -> None:
        self._replay = replay
        self._number = number
        self._given = given
        self._lock = threading.Lock()
        self._results: dict[str, Any] | None = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Whether the batch has finished.

        Returns:
            True once ``result`` returns at once.

        Raises:
            TapeloopError: The replay was made before a fork.
        """
        is_taken = self._results is not None or self._error is not None
        return is_taken or self._replay._native.is_done(self._number)

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the batch.

        Args:
            timeout: The longest wait in seconds; None for no limit.

        Returns:
            The outputs by name: NumPy arrays, and the arrays on the GPU that were passed. Every call
            returns the same arrays.

        Raises:
            TapeloopError: The batch failed. Every call raises it.
            TimeoutError: The batch takes longer.
            ValueError: The timeout is no number.
        """
        end = None if timeout is None else time.monotonic() + timeout
        # One thread waits for the batch, and the others for that thread.
        wait = -1 if timeout is None else min(max(0.0, timeout), threading.TIMEOUT_MAX)
        if not self._lock.acquire(timeout=wait):
            raise TimeoutError(f"the batch takes longer than {timeout} s")
        try:
            if self._error is not None:
                raise self._error
            if self._results is None:
                left = None if end is None else end - time.monotonic()
                try:
                    outputs = self._replay._native.result(self._number, left)
                except _native.TapeloopError as error:
                    self._error = error
                    raise
                if outputs is None:
                    raise TimeoutError(f"the batch takes longer than {timeout} s")
                self._results = self._replay._arrays(outputs, self._given)
                self._given = {}
            return self._results
        finally:
            self._lock.release()

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(None, self.result).__await__()

    def __reduce__(self) -> Any:
        raise TypeError("a job can be neither copied nor pickled")

    def __del__(self) -> None:
        if getattr(self, "_results", True) is None and self._error is None:
            self._replay._native.forget(self._number)


class Replay:
    """CUDA kernels over named buffers, recorded once, and replayed for each batch of arrays.

    Uploads, kernels and downloads of a batch are one CUDA graph, which one call launches. Several
    batches are in flight at once, each in a slot with memory of its own.

    >>> source = '''
    ... extern "C" __global__ void saxpy(const float* x, const float* y, float* out, float a, unsigned n)
    ... {
    ...     const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) out[i] = a * x[i] + y[i];
    ... }'''
    >>> replay = pytapeloop.Replay(
    ...     source,
    ...     [pytapeloop.Launch("saxpy", ["x", "y", "out", 2.0, 1000], grid=8)],
    ...     {
    ...         "x": pytapeloop.Input(1000),
    ...         "y": pytapeloop.Input(1000),
    ...         "out": pytapeloop.Output(1000),
    ...     },
    ... )
    >>> job = replay.submit(x=x, y=y)
    >>> job.result()["out"]  # or await job

    The source is native code: a kernel that reaches outside of its buffers can crash the process, or
    worse. Of a kernel's parameters, a ``const T*`` is read and a ``T*`` is written; one that is also
    read has the comment ``/* updated */`` after its type. NVRTC compiles the source, and the result
    is cached.

    Without a GPU a kernel runs as its twin: a Python function that gets the arguments as NumPy arrays
    and numbers, and writes the same results. It runs on another thread, must not use a replay, and
    keeps what it refers to until the replay is closed or dropped.

    Args:
        source: CUDA C++ text.
        kernels: The launches of a batch, in order.
        buffers: Buffers by name: ``Input``, ``Output``, ``Scratch`` or ``Constant``.
        twins: Python functions by the name of their kernel, for machines without a GPU.
        device: ``"auto"`` for the first GPU, or the CPU if there is none; ``"cpu"``; or the number of
            a GPU.
        mode: ``"graph"``; ``"stream"`` for single calls; or ``"resident"`` for a loop on the GPU that
            needs no call of the driver for a batch.
        slots: How many batches are in flight at once, 1 to 64.
        verify: Whether the first batch of each slot also runs as single calls, and has to give the
            same bits, on a GPU and except in mode stream. Kernels whose results depend on the order of
            threads need False.
        options: Options of NVRTC, such as ``["--use_fast_math"]``, or
            ``["--include-path=/usr/local/cuda/include"]`` for CUDA's own headers.

    Raises:
        TapeloopError: A kernel is not declared or does not compile; there is no GPU and no twin; or
            memory does not suffice.
        TypeError: A type is not supported.
        ValueError: A setting or a shape is not valid, or a launch names a buffer that does not exist.
    """

    def __init__(
        self,
        source: str,
        kernels: Sequence[Launch],
        buffers: Mapping[str, Input | Output | Scratch | Constant],
        *,
        twins: Mapping[str, Callable] | None = None,
        device: str | int = "auto",
        mode: Literal["graph", "stream", "resident"] = "graph",
        slots: int = 3,
        verify: bool = True,
        options: Sequence[str] = (),
    ) -> None:
        self._numpy = _numpy()
        self._buffers = {name: _Shaped.of(self._numpy, name, it) for name, it in buffers.items()}
        kernels = list(kernels)
        twins = dict(twins or {})
        names = {launch.kernel for launch in kernels}
        for name, twin in twins.items():
            if inspect.iscoroutinefunction(twin) or inspect.isgeneratorfunction(twin):
                raise TypeError(f"the twin of {name} is not a plain function")
        if unknown := sorted(set(twins) - names):
            raise ValueError(f"twins of kernels that are not launched: {', '.join(unknown)}")
        launches = [
            (
                launch.kernel,
                _three(launch.grid, "grid"),
                None if launch.block is None else _three(launch.block, "block"),
                _bounded(launch.shared_bytes, "shared_bytes", 0),
                list(launch.args),
                self._twin(twins[launch.kernel]) if launch.kernel in twins else None,
            )
            for launch in kernels
        ]
        given = [
            (name, it.dtype, it.length, it.role, it.contents) for name, it in self._buffers.items()
        ]
        self._native = _native.Replay(
            source, list(options), launches, given, device, mode, slots, verify
        )
        for it in self._buffers.values():
            it.contents = None
        _open.add(self)

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._native.device

    def submit(self, /, **arrays: Any) -> Job:
        """Submits a batch. Waits while all slots are in use.

        Args:
            arrays: An array for each input, and for each output with ``on_device=True``, of its shape
                and type. Arrays of the host are copied before the call returns. Arrays on the GPU are
                used in place once earlier work of their library is done; until the result is taken,
                do not change them.

        Returns:
            The batch in flight.

        Raises:
            TapeloopError: The device failed, or the replay was closed or made before a fork.
            TypeError: An array is of another type.
            ValueError: An array has another shape, is not contiguous, is on another device, is
                missing, or is in use by a batch that writes it.
        """
        prepared = []
        for name, array in arrays.items():
            buffer = self._buffers.get(name)
            if buffer is None or buffer.role not in ("input", "on device"):
                taken = [key for key, it in self._buffers.items() if it.is_passed()]
                raise ValueError(f"{name} is not an array of a batch; they are {', '.join(taken)}")
            prepared.append((name, buffer.prepared(self._numpy, name, array)))
        number = self._native.submit(prepared)
        kept = {name: array for name, array in arrays.items() if self._buffers[name].is_output}
        return Job(self, number, kept)

    def __call__(self, /, **arrays: Any) -> dict[str, Any]:
        """Submits a batch, and waits for it: ``submit(...).result()``."""
        return self.submit(**arrays).result()

    def close(self) -> None:
        """Waits for the batches in flight, and frees the memory on the device.

        Their results can still be taken; other calls fail.
        """
        self._native.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _arrays(self, outputs: Sequence[bytearray], given: Mapping[str, Any]) -> dict[str, Any]:
        results = {}
        downloaded = iter(outputs)
        for name, buffer in self._buffers.items():
            if buffer.role == "output":
                results[name] = buffer.array(self._numpy, next(downloaded))
            elif buffer.is_output:
                results[name] = given[name]
        return results

    def _twin(self, function: Callable[..., None]) -> Callable[[list[Any]], None]:
        numpy = self._numpy

        def run(args: list[Any]) -> None:
            arrays = (
                numpy.frombuffer(arg[1], _dtype(numpy, arg[0])) if isinstance(arg, tuple) else arg
                for arg in args
            )
            function(*arrays)

        return run


@dataclass
class _Shaped:
    """A buffer with its shape, as numbers."""

    shape: tuple[int, ...]
    dtype: str
    role: str
    is_output: bool = False
    contents: Any = field(default=None, repr=False)

    @staticmethod
    def of(numpy: Any, name: str, buffer: Any) -> _Shaped:
        if isinstance(buffer, Constant):
            array = numpy.array(buffer.array, order="C")
            if array.size == 0:
                raise ValueError(f"buffer {name}: the constant has no elements")
            dtype = array.dtype.name
            if dtype == "bfloat16":
                array = array.view(numpy.uint16)
            elif not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            return _Shaped(array.shape, dtype, "constant", contents=array)
        if not isinstance(buffer, (Input, Output, Scratch)):
            kinds = "Input, Output, Scratch or Constant"
            raise TypeError(f"buffer {name} is {type(buffer).__name__}; take {kinds}")
        shape = _integers(buffer.shape, f"buffer {name}: the shape")
        if not shape or any(side < 1 for side in shape):
            raise ValueError(f"buffer {name}: the shape {buffer.shape!r} has no elements")
        if math.prod(shape) >= 1 << 63:
            raise ValueError(f"buffer {name}: the shape {buffer.shape!r} is larger than any memory")
        dtype = buffer.dtype
        dtype = dtype if dtype == "bfloat16" else numpy.dtype(dtype).name
        is_output = isinstance(buffer, Output)
        role = "scratch" if isinstance(buffer, Scratch) else "output" if is_output else "input"
        if role != "scratch" and buffer.on_device:
            role = "on device"
        return _Shaped(shape, dtype, role, is_output)

    @property
    def length(self) -> int:
        return math.prod(self.shape)

    def is_passed(self) -> bool:
        return self.role in ("input", "on device")

    def prepared(self, numpy: Any, name: str, array: Any) -> Any:
        """The array as the native part takes it, of the right type and shape."""
        if self.role == "input" and not _is_on_gpu(array):
            array = numpy.asarray(array)
        # PyTorch's types have no name; its text is torch.float32.
        dtype = getattr(array.dtype, "name", None) or str(array.dtype).rpartition(".")[2]
        shape = tuple(array.shape)
        if shape != self.shape:
            raise ValueError(f"{name}: its shape is {shape}, and the buffer's {self.shape}")
        # Where NumPy has no bfloat16, its bits are given.
        if dtype != self.dtype and (self.dtype, dtype) != ("bfloat16", "uint16"):
            raise TypeError(f"{name}: its elements are {dtype}, and the buffer's {self.dtype}")
        if self.role == "input" and isinstance(array, numpy.ndarray):
            array = numpy.ascontiguousarray(array)
            # NumPy gives no capsule for an array that cannot be written, nor for foreign types.
            if dtype == "bfloat16":
                array = array.view(numpy.uint16)
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            if not array.flags.writeable:
                array = array.copy()
        return array

    def array(self, numpy: Any, data: bytearray) -> Any:
        return numpy.frombuffer(data, _dtype(numpy, self.dtype)).reshape(self.shape)


def _dtype(numpy: Any, name: str) -> Any:
    """NumPy has no bfloat16; its bits are given, unless ml_dtypes is installed."""
    if name != "bfloat16":
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        return numpy.dtype("uint16")
    return numpy.dtype(ml_dtypes.bfloat16)


def _is_on_gpu(array: Any) -> bool:
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] == 2


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("pytapeloop.Replay needs NumPy: pip install numpy") from None
    return numpy


def _integers(sides: Any, what: str) -> tuple[int, ...]:
    """One integer or several, of Python or of NumPy."""
    several = sides if isinstance(sides, (tuple, list)) or hasattr(sides, "__len__") else (sides,)
    try:
        return tuple(operator.index(side) for side in several)
    except TypeError:
        raise TypeError(f"{what} is {sides!r}; take one integer or several") from None


def _three(sides: int | Sequence[int], what: str) -> list[int]:
    three = list(_integers(sides, what))
    if not 1 <= len(three) <= 3 or any(side < 1 for side in three):
        raise ValueError(f"{what} is {sides!r}; take 1 to 3 numbers from 1 on")
    return [_bounded(side, what, 1) for side in three] + [1] * (3 - len(three))


def _bounded(number: Any, what: str, least: int) -> int:
    """An integer of 32 bits."""
    try:
        number = operator.index(number)
    except TypeError:
        raise TypeError(f"{what} is {number!r}; take an integer") from None
    if not least <= number < 1 << 32:
        raise ValueError(f"{what} is {number}; take {least} to {(1 << 32) - 1}")
    return number


@atexit.register
def _close_all() -> None:
    # Twins cannot run once the interpreter is gone.
    for replay in list(_open):
        replay.close()
