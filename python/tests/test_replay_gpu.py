"""Kernels of the caller's own on a GPU, over arrays of NumPy, CuPy and PyTorch. Each test is skipped
where there is no GPU, or the library is missing."""

import gc

import numpy as np
import pytest
import pytapeloop
from pytapeloop import Constant, Input, Launch, Output, Replay, Scratch
from test_replay import arrays, expected, made


def has_gpu():
    try:
        made(device=0).close()
    except pytapeloop.TapeloopError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_gpu(), reason="there is no GPU")

SOURCE = """
extern "C" __global__ void add(const float* x, const float* y, float* out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}
extern "C" __global__ void accumulate(float* x /* updated */, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
"""
N = 1 << 20


def adder(**options):
    return Replay(
        SOURCE,
        [Launch("add", ["x", "y", "out", N], grid=N // 256, block=256)],
        {
            "x": Input(N, on_device=True),
            "y": Input(N),
            "out": Output(N, on_device=True),
        },
        device=0,
        **options,
    )


@pytest.mark.parametrize("mode", ["graph", "stream", "resident"])
def test_the_gpu_computes_what_the_twins_do(mode):
    with made(device=0, mode=mode) as replay:
        jobs = [replay.submit(**arrays(number)) for number in range(200)]
        for number, job in enumerate(jobs):
            np.testing.assert_array_equal(job.result()["out"], expected(number))


def test_cupy_arrays_are_used_in_place():
    cupy = pytest.importorskip("cupy")
    replay = adder()
    y = np.arange(N, dtype=np.float32)
    jobs = []
    for number in range(20):
        # Not waited for: the kernels have to run after it.
        x = cupy.full(N, number, cupy.float32) * 2 + 1
        out = cupy.empty(N, cupy.float32)
        jobs.append((number, out, replay.submit(x=x, y=y, out=out)))
    for number, out, job in jobs:
        assert job.result()["out"] is out
        cupy.testing.assert_array_equal(out, cupy.asarray(y) + (2 * number + 1))


def test_torch_tensors_are_used_in_place_on_their_streams():
    torch = pytest.importorskip("torch")
    replay = adder()
    y = torch.arange(N, dtype=torch.float32)
    jobs = []
    for number in range(20):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.full((N,), float(number), device="cuda")
            for _ in range(50):
                x = x + 1
            out = torch.empty(N, device="cuda")
            torch.cuda.current_stream().synchronize() if number % 2 else None
            jobs.append((number, out, replay.submit(x=x, y=y, out=out)))
    for number, out, job in jobs:
        assert job.result()["out"] is out
        assert torch.equal(out.cpu(), y + (number + 50))


def test_an_array_lives_as_long_as_a_batch_may_use_it():
    cupy = pytest.importorskip("cupy")
    replay = adder(slots=1)
    y = np.zeros(N, np.float32)

    class Kept:
        """An array whose capsule keeps it."""

        def __init__(self):
            self.array = cupy.ones(N, cupy.float32)
            self.shape, self.dtype = self.array.shape, self.array.dtype

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__(stream=stream)

    pool = cupy.get_default_memory_pool()
    out = cupy.empty(N, cupy.float32)
    zeros = cupy.zeros(N, cupy.float32)
    replay(x=zeros, y=y, out=out)
    used = pool.used_bytes()
    x = Kept()
    replay(x=x, y=y, out=out)
    del x
    gc.collect()
    # The graph of the slot still has the address.
    assert pool.used_bytes() == used + 4 * N
    assert float(out[0]) == 1
    for _ in range(2):
        replay(x=zeros, y=y, out=out)
    gc.collect()
    assert pool.used_bytes() == used


def test_wrong_arrays_are_refused():
    cupy = pytest.importorskip("cupy")
    replay = adder(slots=1)
    x, out = cupy.ones(N, cupy.float32), cupy.empty(N, cupy.float32)
    y = np.zeros(N, np.float32)
    for match, wrong in [
        ("x: .*on the GPU", {"x": y}),
        ("y: .*on_device=True", {"y": x}),
        ("x: .*shape", {"x": x[1:]}),
        ("contiguous", {"x": cupy.ones((2 * N,), cupy.float32)[::2]}),
        ("out: .*missing", {"out": None}),
        ("shares memory", {"out": x}),
    ]:
        given = {"x": x, "y": y, "out": out, **wrong}
        with pytest.raises(ValueError, match=match):
            replay.submit(**{name: array for name, array in given.items() if array is not None})
    with pytest.raises(TypeError, match="elements are float64"):
        replay.submit(x=cupy.ones(N), y=y, out=out)
    replay(x=x, y=y, out=out)
    cupy.testing.assert_array_equal(out, x)


def test_an_array_of_another_gpu_is_refused():
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        # The check is of the number that DLPack gives.
        class Elsewhere:
            def __init__(self, array):
                self.array = array
                self.shape, self.dtype = array.shape, array.dtype

            def __dlpack_device__(self):
                return (2, 1)

            def __dlpack__(self, stream=None):
                return self.array.__dlpack__(stream=stream)

        x = Elsewhere(torch.ones(N, device="cuda:0"))
    else:
        x = torch.ones(N, device="cuda:1")
    out = torch.empty(N, device="cuda:0")
    with pytest.raises(ValueError, match="GPU 1.* 0"):
        adder().submit(x=x, y=np.zeros(N, np.float32), out=out)


def test_batches_in_flight_do_not_share_what_one_writes():
    cupy = pytest.importorskip("cupy")
    replay = Replay(
        SOURCE,
        [Launch("accumulate", ["x", N], grid=N // 256, block=256)],
        {"x": Output(N, on_device=True)},
        device=0,
    )
    x = cupy.zeros(N, cupy.float32)
    taken = 0
    for _ in range(100):
        try:
            job = replay.submit(x=x)
        except ValueError as error:
            assert "in flight" in str(error)
            job.result()
            job = replay.submit(x=x)
        taken += 1
    job.result()
    assert float(x[0]) == taken == 100.0


def test_resident_mode_refuses_arrays_that_change():
    with pytest.raises(ValueError, match='mode="graph"'):
        adder(mode="resident")


def test_a_kernel_that_does_not_compile_names_the_line():
    with pytest.raises(pytapeloop.TapeloopError, match=r"replay.cu\(3\)"):
        Replay(
            'extern "C" __global__ void broken(float* y)\n{\n    y[0] = nothing;\n}\n',
            [Launch("broken", ["y"])],
            {"y": Output(1)},
            device=0,
        )


def test_bfloat16_and_scratch_and_constants():
    torch = pytest.importorskip("torch")
    # A bfloat16 is the upper half of a float, so the kernel needs no header of CUDA.
    source = """
struct __nv_bfloat16 { unsigned short bits; };
extern "C" __global__ void narrow(const float* w, const __nv_bfloat16* x, float* mid, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) mid[i] = __uint_as_float(unsigned(x[i].bits) << 16) * w[i];
}
extern "C" __global__ void copy(const float* mid, float* y, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mid[i];
}
"""
    n = 1000
    w = np.random.default_rng(1).random(n, np.float32)
    replay = Replay(
        source,
        [Launch("narrow", ["w", "x", "mid", n], grid=8), Launch("copy", ["mid", "y", n], grid=8)],
        {
            "w": Constant(w),
            "x": Input(n, "bfloat16", on_device=True),
            "mid": Scratch(n),
            "y": Output(n),
        },
        device=0,
    )
    x = torch.arange(n, device="cuda").to(torch.bfloat16)
    y = replay(x=x)["y"]
    np.testing.assert_array_equal(y, x.float().cpu().numpy() * w)
