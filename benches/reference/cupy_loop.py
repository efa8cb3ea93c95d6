#!/usr/bin/env python3
"""The work of `tapeloop bench` in CuPy: slots on streams of their own, as plain calls
and as CUDA graphs. It answers as README.md says.

    python3 cupy_loop.py --serve
"""

import functools
import sys

import cupy
import cupyx
import numpy as np

from closed_loop import ADVANCE, BLOCK, KERNELS, Points, factor
from protocol import serve

UP = cupy.cuda.runtime.memcpyHostToDevice
DOWN = cupy.cuda.runtime.memcpyDeviceToHost


@functools.cache
def kernel(name):
    module = cupy.RawModule(code=KERNELS.read_text(), options=("--std=c++17",))
    return module.get_function(name)


class Slot:
    """One slot: pinned memory, device memory, a stream, and the graph of a batch."""

    def __init__(self, work, index):
        values = np.arange(work.n * work.stride, dtype=np.int64)
        self.x_host = cupyx.empty_pinned(len(values), np.float32)
        self.x_host[:] = (values * 7 + index * 13) % 1021
        self.y_host = cupyx.zeros_pinned(work.n, np.float32)
        self.x = cupy.zeros(len(values), np.float32)
        self.y, *self.scratch = (cupy.zeros(work.n, np.float32) for _ in range(3))
        self.launches = list(self.chain(work))
        self.grid = (work.blocks,)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.done = cupy.cuda.Event(disable_timing=True)
        self.busy = False
        # The memory above was made on another stream.
        cupy.cuda.Device().synchronize()
        with self.stream:
            self.batch()
            self.stream.synchronize()
            self.stream.begin_capture()
            self.batch()
            self.graph = self.stream.end_capture()

    def chain(self, work):
        """Each kernel with its arguments."""
        run = kernel("advance" if work.steps else "step")
        n = np.uint32(work.n)
        value = self.x
        for k in range(work.kernels):
            out = self.y if k + 1 == work.kernels else self.scratch[k % 2]
            if work.steps:
                scalars = (n, np.uint32(work.steps), *map(np.float32, ADVANCE))
            else:
                scalars = (n, np.uint32(1 if k else work.stride), np.float32(factor(k)))
            yield run, (value, out, *scalars)
            value = out

    def batch(self):
        """Both copies, and the kernels between, on the current stream."""
        copy, stream = cupy.cuda.runtime.memcpyAsync, self.stream.ptr
        copy(self.x.data.ptr, self.x_host.ctypes.data, self.x_host.nbytes, UP, stream)
        for run, arguments in self.launches:
            run(self.grid, (BLOCK,), arguments)
        copy(self.y_host.ctypes.data, self.y.data.ptr, self.y_host.nbytes, DOWN, stream)

    def submit(self, mode):
        if mode == "graph":
            self.graph.launch(self.stream)
        else:
            self.stream.use()
            self.batch()
        self.done.record(self.stream)

    def finish(self, _mode):
        if self.busy:
            while not self.done.done:
                pass
        self.busy = False

    def spoil(self):
        self.y_host.view(np.uint8).fill(0xFF)

    def output(self):
        return self.y_host.tobytes()


def hello():
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return {"name": "CuPy", "version": cupy.__version__, "device": name}


def main():
    if sys.argv[1:] != ["--serve"]:
        sys.exit(__doc__)
    return serve(hello, Points(Slot).answer)


if __name__ == "__main__":
    sys.exit(main())
