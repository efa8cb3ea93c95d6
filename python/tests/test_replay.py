"""Kernels of the caller's own, on the CPU by their twins."""

import asyncio
import copy
import ctypes
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import pytapeloop
from pytapeloop import Constant, Input, Launch, Output, Replay, Scratch

SOURCE = """
extern "C" __global__ void scale(const float* x, float* mid, float a, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) mid[i] = a * x[i];
}
extern "C" __global__ void add(float* mid /* updated */, const float* w, const double* shift, float* out,
                               unsigned* count, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        mid[i] += w[i % 4];
        out[i] = mid[i] + float(shift[0]);
    }
    if (i == 0) count[0] = n;
}
"""
N = 100


def scale(x, mid, a, n):
    mid[:n] = np.float32(a) * x[:n]


def add(mid, w, shift, out, count, n):
    mid[:n] += w[np.arange(n) % 4]
    out[:n] = mid[:n] + np.float32(shift[0])
    count[0] = n


TWINS = {"scale": scale, "add": add}
WEIGHTS = np.array([1, 2, 3, 4], np.float32)
LAUNCHES = [
    Launch("scale", ["x", "mid", 2.0, N], grid=1),
    Launch("add", ["mid", "w", "shift", "out", "count", N], grid=(1, 1), block=128),
]


def buffers():
    return {
        "x": Input((20, 5)),
        "mid": Scratch(N),
        "w": Constant(WEIGHTS),
        "shift": Input(1, "float64"),
        "out": Output([20, 5]),
        "count": Output(1, "uint32"),
    }


def made(**options):
    return Replay(SOURCE, LAUNCHES, buffers(), **{"twins": TWINS, "device": "cpu", **options})


def arrays(number):
    x = np.arange(N, dtype=np.float32).reshape(20, 5) + number
    return {"x": x, "shift": np.array([number / 2], np.float64)}


def expected(number):
    x = arrays(number)["x"]
    w = WEIGHTS[np.arange(N) % 4].reshape(20, 5)
    return np.float32(2) * x + w + np.float32(number / 2)


@pytest.mark.parametrize("mode", ["graph", "stream", "resident"])
def test_batches_are_computed_in_any_order_of_taking(mode):
    with made(mode=mode) as replay:
        assert replay.device
        jobs = [replay.submit(**arrays(number)) for number in range(40)]
        for number, job in reversed(list(enumerate(jobs))):
            results = job.result()
            assert list(results) == ["out", "count"]
            np.testing.assert_array_equal(results["out"], expected(number))
            assert results["out"].dtype == np.float32
            assert results["count"] == [N]
            assert job.done()
            assert job.result() is results
            results["out"][0] = 1
        np.testing.assert_array_equal(replay(**arrays(7))["out"], expected(7))


def test_a_job_can_be_awaited():
    async def all_of(replay):
        jobs = [replay.submit(**arrays(number)) for number in range(3)]
        return await asyncio.gather(*(wait(job) for job in jobs))

    async def wait(job):
        return (await job)["out"]

    outs = asyncio.run(all_of(made()))
    for number, out in enumerate(outs):
        np.testing.assert_array_equal(out, expected(number))


def test_several_threads_submit_and_take_at_once():
    replay = made(slots=2)
    wrong = []

    def work(start):
        for number in range(start, start + 50):
            if not np.array_equal(replay(**arrays(number))["out"], expected(number)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_results_that_nobody_takes_are_dropped():
    replay = made(slots=1)
    for number in range(20):
        replay.submit(**arrays(number))
    gc.collect()
    np.testing.assert_array_equal(replay(**arrays(3))["out"], expected(3))


def test_arrays_of_any_layout_are_taken_as_they_are():
    replay = made()
    turned = np.asfortranarray(arrays(5)["x"])
    fixed = arrays(5)["shift"]
    fixed.flags.writeable = False
    np.testing.assert_array_equal(replay(x=turned, shift=fixed)["out"], expected(5))
    spaced = np.zeros((20, 10), np.float32)
    spaced[:, ::2] = arrays(5)["x"]
    np.testing.assert_array_equal(replay(x=spaced[:, ::2], shift=fixed)["out"], expected(5))


def test_what_is_no_batch_is_refused_and_the_next_one_runs():
    replay = made(slots=1)
    good = arrays(1)
    for error, wrong in [
        (ValueError, {**good, "x": good["x"].ravel()}),
        (TypeError, {**good, "x": good["x"].astype(np.float64)}),
        (ValueError, {"x": good["x"]}),
        (ValueError, {**good, "mid": good["x"]}),
        (ValueError, {**good, "y": good["x"]}),
    ]:
        with pytest.raises(error):
            replay.submit(**wrong)
    with pytest.raises(ValueError, match="shift: .*missing"):
        replay.submit(x=good["x"])
    np.testing.assert_array_equal(replay(**good)["out"], expected(1))


def test_what_cannot_be_recorded_is_refused():
    def refused(error, match, launches=LAUNCHES, changes=None, **options):
        options = {"twins": TWINS, "device": "cpu", **options}
        with pytest.raises(error, match=match):
            Replay(SOURCE, launches, {**buffers(), **(changes or {})}, **options)

    refused(pytapeloop.TapeloopError, "kernel .*square", [Launch("square", ["x"])], twins={})
    refused(pytapeloop.TapeloopError, "kernel scale .*twin", twins={})
    refused(ValueError, "not launched: square", twins={**TWINS, "square": scale})
    refused(ValueError, "4 arguments.* 1", [Launch("scale", ["x"])], twins={"scale": scale})
    only = {"twins": {"scale": scale}}
    refused(ValueError, 'no buffer "z"', [Launch("scale", ["z", "mid", 2.0, N])], **only)
    refused(TypeError, "name", [Launch("scale", [1, "mid", 2.0, N])], **only)
    refused(TypeError, "parameter n", [Launch("scale", ["x", "mid", 2.0, -1])], **only)
    refused(ValueError, 'buffer "w" is constant', [Launch("scale", ["x", "w", 2.0, N])], **only)
    refused(pytapeloop.TapeloopError, "buffer mid.* read", LAUNCHES[1:], twins={"add": add})
    refused(ValueError, "buffer mid.* no elements", changes={"mid": Scratch(0)})
    refused(TypeError, "take Input", changes={"mid": np.zeros(3)})
    refused(TypeError, "complex64", changes={"mid": Scratch(N, "complex64")})
    refused(ValueError, "buffer x.* device", changes={"x": Input(N, on_device=True)})
    refused(ValueError, 'mode is "fast"', mode="fast")
    refused(ValueError, "slots is 0", slots=0)
    refused(ValueError, "grid is", [Launch("scale", ["x", "mid", 2.0, N], grid=0)], **only)
    refused(ValueError, "device is 'gpu'", device="gpu")
    for slots in (-1, 1 << 70, "three"):
        refused(ValueError, "slots is .*; take 1 to 64", slots=slots)
    for side in (1 << 32, 1 << 70):
        for given in ({"grid": side}, {"grid": 1, "block": (1, side)}, {"shared_bytes": side}):
            wrong = [Launch("scale", ["x", "mid", 2.0, N], **given)]
            refused(ValueError, f"is {side}; take", wrong, **only)
    refused(ValueError, "shared_bytes is -1", [Launch("scale", [], shared_bytes=-1)], **only)
    refused(TypeError, "shared_bytes is 'a'", [Launch("scale", [], shared_bytes="a")], **only)
    for shape in (1 << 64, (1 << 40, 1 << 40)):
        refused(ValueError, "buffer mid.* any memory", changes={"mid": Scratch(shape)})


def test_an_error_of_a_twin_is_that_of_its_batch(capfd):
    def failing(x, mid, a, n):
        if x[0] == 3:
            raise ArithmeticError("three, as told")
        scale(x, mid, a, n)

    with Replay(
        SOURCE, LAUNCHES, buffers(), twins={**TWINS, "scale": failing}, device="cpu"
    ) as replay:
        jobs = [replay.submit(**arrays(number)) for number in range(6)]
        for number, job in enumerate(jobs):
            if number == 3:
                with pytest.raises(pytapeloop.TapeloopError, match="ArithmeticError: three, as told"):
                    job.result()
            else:
                np.testing.assert_array_equal(job.result()["out"], expected(number))
    assert capfd.readouterr() == ("", "")


def test_a_wait_has_a_limit():
    gate = threading.Event()

    def slow(x, mid, a, n):
        gate.wait()
        scale(x, mid, a, n)

    # Batches of this size are computed by a thread of the pool.
    n = 1 << 16
    source = SOURCE.partition('extern "C" __global__ void add')[0]
    replay = Replay(
        source,
        [Launch("scale", ["x", "y", 2.0, n], grid=n // 128)],
        {"x": Input(n), "y": Output(n)},
        twins={"scale": slow},
        device="cpu",
    )
    job = replay.submit(x=np.ones(n, np.float32))
    with pytest.raises(TimeoutError):
        job.result(timeout=0.05)
    assert not job.done()
    gate.set()
    assert (job.result()["y"] == 2).all()


def test_a_closed_replay_says_so():
    replay = made()
    job = replay.submit(**arrays(1))
    dropped = replay.submit(**arrays(1))
    replay.close()
    replay.close()
    del dropped
    assert job.done()
    np.testing.assert_array_equal(job.result()["out"], expected(1))
    with pytest.raises(pytapeloop.TapeloopError, match="closed"):
        replay.submit(**arrays(1))


def test_a_fork_is_refused():
    replay = made()
    job = replay.submit(**arrays(1))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            replay.submit(**arrays(1))
        except pytapeloop.TapeloopError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    assert b"fork" in os.read(reader, 1000)
    np.testing.assert_array_equal(job.result()["out"], expected(1))


def test_the_interpreter_ends_with_batches_in_flight(tmp_path):
    text = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_replay import *
replay = made()
jobs = [replay.submit(**arrays(number)) for number in range(3)]
print("end")
"""
    # Another folder than the sources', which have no native module.
    options = {"capture_output": True, "text": True, "timeout": 120, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-c", text], **options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


BIG = 1 << 16


def one(twin, n=BIG, **options):
    launch = Launch("scale", ["x", "y", np.float32(2), np.int64(n)], grid=np.int64(n // 128 + 1))
    ends = {"x": Input(np.int64(n)), "y": Output((np.int64(n),))}
    source = SOURCE.partition('extern "C" __global__ void add')[0]
    return Replay(source, (it for it in [launch]), ends, twins={"scale": twin}, device="cpu", **options)


def test_the_interpreter_waits_for_a_twin_that_runs(tmp_path):
    text = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_replay import *
import time
def slow(x, y, a, n):
    time.sleep(0.5)
    scale(x, y, a, n)
    print("ran")
replay = one(slow)
job = replay.submit(x=np.ones(BIG, np.float32))
print("end", flush=True)
"""
    options = {"capture_output": True, "text": True, "timeout": 120, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-c", text], **options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\nran\n", "")


@pytest.mark.parametrize("n", [8, BIG])
def test_a_twin_cannot_use_a_replay(n):
    caught, submitted = [], threading.Event()

    def nested(x, y, a, n):
        # The twin may begin before `submit` returns.
        assert submitted.wait(timeout=60)
        for use in (lambda: replay.submit(x=x), lambda: job.done(), replay.close):
            try:
                use()
            except pytapeloop.TapeloopError as error:
                caught.append(str(error))
        scale(x, y, a, n)

    replay = one(nested, n)
    job = None
    job = replay.submit(x=np.ones(n, np.float32))
    submitted.set()
    assert (job.result(timeout=60)["y"] == 2).all()
    (text,) = set(caught)
    assert "twin" in text and "replay" in text


@pytest.mark.parametrize("n", [8, BIG])
def test_a_slow_twin_stops_neither_timeouts_nor_other_threads(n):
    gate = threading.Event()

    def slow(x, y, a, n):
        gate.wait()
        scale(x, y, a, n)

    replay = one(slow, n)
    x = np.ones(n, np.float32)
    job = replay.submit(x=x)
    for timeout in (0.05, 0, -1):
        with pytest.raises(TimeoutError):
            job.result(timeout)
    with pytest.raises(ValueError, match="timeout"):
        job.result(float("nan"))
    assert not job.done()
    other = replay.submit(x=x)
    gate.set()
    assert (job.result(1e300)["y"] == 2).all()
    assert (other.result(float("inf"))["y"] == 2).all()


def test_every_taker_of_a_job_gets_the_same():
    replay = made()
    for number in range(20):
        job = replay.submit(**arrays(number))
        found = []
        threads = [threading.Thread(target=lambda: found.append(job.result())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 and all(results is found[0] for results in found)

    async def three(job):
        return await asyncio.gather(*[wait(job) for _ in range(3)])

    async def wait(job):
        return await job

    results = asyncio.run(three(replay.submit(**arrays(1))))
    assert results[0] is results[1] is results[2]

    def failing(x, y, a, n):
        raise ArithmeticError("as told")

    job = one(failing, 8).submit(x=np.ones(8, np.float32))
    for _ in range(2):
        with pytest.raises(pytapeloop.TapeloopError, match="as told"):
            job.result()
    assert job.done()
    with pytest.raises(TypeError, match="pickled"):
        copy.copy(job)


def test_an_array_that_lies_is_refused_and_the_slot_is_free_again():
    class Lies:
        shape, dtype = (8,), np.dtype("float32")

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self):
            raise KeyboardInterrupt

    class Submits(Lies):
        def __dlpack__(self):
            replay(x=big)

    big = np.ones(8, ">f4")
    replay = one(scale, 8, slots=1)
    with pytest.raises(KeyboardInterrupt):
        replay._native.submit([("x", Lies())])
    with pytest.raises(pytapeloop.TapeloopError, match="array submits a batch"):
        replay._native.submit([("x", Submits())])
    assert (replay(x=big)["y"] == 2).all()


def test_a_replay_that_is_refused_keeps_no_constant():
    array = np.ones(8, "f4")
    launches = [("scale", (1, 1, 1), None, 0, ["w", "nothing"], None)]
    given = [("w", "float32", 8, "constant", array)]
    before = sys.getrefcount(array)
    with pytest.raises((TypeError, ValueError, pytapeloop.TapeloopError)):
        pytapeloop._native.Replay(SOURCE, [], launches, given, "cpu", "graph", 1, True)
    assert sys.getrefcount(array) == before


def test_constants_of_other_byte_orders_and_none():
    replay = Replay(
        SOURCE,
        LAUNCHES,
        {**buffers(), "w": Constant(WEIGHTS.astype(">f4"))},
        twins=TWINS,
        device="cpu",
    )
    np.testing.assert_array_equal(replay(**arrays(4))["out"], expected(4))
    with pytest.raises(ValueError, match="buffer w.* no elements"):
        Replay(SOURCE, LAUNCHES, {**buffers(), "w": Constant([])}, twins=TWINS, device="cpu")

    async def later(x, y, a, n):
        pass

    with pytest.raises(TypeError, match="function"):
        one(later)


class Tensor(ctypes.Structure):
    """DLPack's ``DLManagedTensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Made:
    """An array whose capsule has any numbers."""

    def __init__(self, sides=(8,), **changes):
        self.memory = (ctypes.c_float * 8)(*[1.0] * 8)
        self.sides = (ctypes.c_int64 * len(sides))(*sides)
        fields = {
            "data": ctypes.addressof(self.memory),
            "device": (1, 0),
            "dimensions": len(sides),
            "code": 2,
            "bits": 32,
            "lanes": 1,
            "shape": self.sides,
            **changes,
        }
        self.tensor = Tensor(**fields)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_capsules_with_impossible_numbers_are_refused():
    replay = one(scale, 8, slots=1)
    shapes = [(-1, -8), (1 << 32, 1 << 32, 8), ((1 << 62) + 8,), ((1 << 58) + 8,)]
    fields = [{"data": None}, {"dimensions": -1}, {"shape": None}, {"offset": (1 << 64) - 1}]
    for array in [*map(Made, shapes), *(Made(**changes) for changes in fields)]:
        with pytest.raises(ValueError, match="x: its DLPack struct"):
            replay._native.submit([("x", array)])
    for wrong in [{"code": 0}, {"bits": 8, "lanes": 4}, {"bits": 64}, {"bits": 0}]:
        with pytest.raises(ValueError, match="x: its DLPack data are no elements of float32"):
            replay._native.submit([("x", Made(**wrong))])
    number = replay._native.submit([("x", Made())])
    (result,) = replay._native.result(number, None)
    assert (np.frombuffer(result, np.float32)[:8] == 2).all()


def test_a_replay_that_is_closed_meanwhile_loses_no_result():
    for number in range(50):
        replay, jobs = one(scale, 8), []

        def submit():
            while True:
                try:
                    jobs.append(replay.submit(x=np.ones(8, np.float32)))
                except pytapeloop.TapeloopError:
                    return

        thread = threading.Thread(target=submit)
        thread.start()
        while len(jobs) < number % 5:
            pass
        replay.close()
        thread.join()
        assert all((job.result()["y"] == 2).all() for job in jobs)


def test_the_child_of_a_fork_in_a_twin_ends_where_the_twin_returns(tmp_path):
    text = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_replay import *
def forks(x, y, a, n):
    child = os.fork()
    scale(x, y, a, n)
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print((one(forks)(x=np.ones(BIG, np.float32))["y"] == 2).all())
"""
    options = {"capture_output": True, "text": True, "timeout": 120, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], **options)
    assert (done.returncode, done.stdout) == (0, "1\nTrue\n")
    assert "twin has forked" in done.stderr and "os._exit" in done.stderr
