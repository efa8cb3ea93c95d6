#!/usr/bin/env python3
"""The work of `tapeloop bench` in plain Python, without a GPU: for tests of what asks.

    python3 host_loop.py --serve
"""

import platform
import struct
import sys

from closed_loop import Points, factor
from protocol import Refused, serve


class Slot:
    """One slot, whose batch is done as soon as it is submitted."""

    def __init__(self, work, index):
        self.work = work
        self.x = [float((i * 7 + index * 13) % 1021) for i in range(work.n * work.stride)]
        self.y = bytearray(4 * work.n)
        self.busy = False

    def submit(self, mode):
        if mode == "graph":
            raise Refused("there are no graphs here")
        value = self.x[:: self.work.stride]
        for k in range(self.work.kernels):
            if self.work.steps:
                value = [x + self.work.steps for x in value]
            else:
                value = [x * factor(k) + 1.0 for x in value]
        struct.pack_into(f"<{len(value)}f", self.y, 0, *value)

    def finish(self, _mode):
        self.busy = False

    def spoil(self):
        self.y[:] = b"\xff" * len(self.y)

    def output(self):
        return bytes(self.y)


def hello():
    return {"name": "plain Python", "version": platform.python_version()}


if __name__ == "__main__":
    if sys.argv[1:] != ["--serve"]:
        sys.exit(__doc__)
    sys.exit(serve(hello, Points(Slot).answer))
