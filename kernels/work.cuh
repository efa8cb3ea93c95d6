// Division of work among threads, warps and blocks. The sources are compiled as kernels, which
// process the whole batch, and with FUSED as device functions of the fused kernel, in which each
// block processes one structure (fused.cu). Kernels that divide their work with these functions are
// correct as both.
#pragma once
#include "layout.cuh"

// Threads of a block that works on one unit, and of a block of the fused kernel.
constexpr unsigned BLOCK = 256;

#undef KERNEL
#ifdef FUSED
#define KERNEL(...) __device__ __noinline__ void
// Warps of a block in kernels with a warp per unit.
constexpr unsigned WARPS = BLOCK / 32;
// Bytes of shared memory of a warp: the kernels of solvent-accessible areas need the most.
constexpr unsigned WARP_BYTES = 6656;
// Units of the block's structure: begin ... < end of each axis.
__shared__ unsigned begins[AXES], ends[AXES];
#else
#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
constexpr unsigned WARPS = 4;
#endif

// Waits for all work before the kernel, which may start before that has ended (programmatic dependent
// launch). Each kernel calls it first, which the build script checks. As steps of the fused kernel,
// kernels follow each other in one launch.
__device__ inline void wait_for_dependencies()
{
#if __CUDA_ARCH__ >= 900 && !defined(FUSED)
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline unsigned lane() { return threadIdx.x % 32; }

// The number of the bits in `lanes` that stand for lanes before this one.
__device__ inline unsigned before(unsigned lanes)
{
    return __popc(lanes & ((1u << lane()) - 1));
}

// Shared memory for one T per warp, in a block of WARPS_OF_BLOCK warps. In the fused kernel all
// functions share the WARP_BYTES of each warp.
template <typename T, unsigned WARPS_OF_BLOCK> __device__ inline T& warp_memory()
{
#ifdef FUSED
    static_assert(sizeof(T) <= WARP_BYTES, "src/features/fused.rs asks for so much");
    extern __shared__ float4 warp_bytes[];
    return *(T*)((char*)warp_bytes + threadIdx.x / 32 * WARP_BYTES);
#else
    __shared__ T rooms[WARPS_OF_BLOCK];
    return rooms[threadIdx.x / 32];
#endif
}

// The units of an axis from begin to end that the kernel processes. Of other units it must not read
// results of other kernels.
struct Units { unsigned begin, end; };

__device__ inline Units units(const unsigned* header, unsigned axis)
{
#ifdef FUSED
    return {begins[axis], ends[axis]};
#else
    return {0, header[axis]};
#endif
}

// Calls take(unit) for each unit of an axis, with a thread per unit.
template <typename Take>
__device__ inline void each_thread(const unsigned* header, unsigned axis, Take take)
{
#ifdef FUSED
    for (unsigned unit = begins[axis] + threadIdx.x; unit < ends[axis]; unit += BLOCK)
        take(unit);
#else
    const unsigned unit = blockIdx.x * blockDim.x + threadIdx.x;
    if (unit < header[axis])
        take(unit);
#endif
}

// Calls take(unit) for each unit of an axis, with a warp per unit. All threads of the warp call.
template <typename Take>
__device__ inline void each_warp(const unsigned* header, unsigned axis, Take take)
{
#ifdef FUSED
    for (unsigned unit = begins[axis] + threadIdx.x / 32; unit < ends[axis]; unit += WARPS) {
        take(unit);
        __syncwarp();
    }
#else
    const unsigned unit = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (unit < header[axis])
        take(unit);
#endif
}

// Calls take(unit) for each unit of an axis, with a block per unit. All threads of the block call.
template <typename Take>
__device__ inline void each_block(const unsigned* header, unsigned axis, Take take)
{
#ifdef FUSED
    for (unsigned unit = begins[axis]; unit < ends[axis]; ++unit) {
        take(unit);
        __syncthreads();
    }
#else
    if (blockIdx.x < header[axis])
        take(blockIdx.x);
#endif
}

// Calls take(first) for every BLOCK units of an axis, with a thread per unit. All threads of the
// block call.
template <typename Take>
__device__ inline void each_tile(const unsigned* header, unsigned axis, Take take)
{
#ifdef FUSED
    for (unsigned first = begins[axis]; first < ends[axis]; first += BLOCK) {
        take(first);
        __syncthreads();
    }
#else
    if (blockIdx.x * BLOCK < header[axis])
        take(blockIdx.x * BLOCK);
#endif
}

// The sum over the threads of a block of BLOCK up to and including this one, plus `base`. Adds the
// sum over all threads to `base`. `warp_sums` is [BLOCK / 32]; synchronize before it is used again.
__device__ inline unsigned block_scan(unsigned* warp_sums, unsigned value, unsigned& base)
{
    const unsigned warp = threadIdx.x / 32;
    unsigned sum = warp_scan(value);
    if (lane() == 31)
        warp_sums[warp] = sum;
    __syncthreads();
    sum += base;
    for (unsigned w = 0; w < BLOCK / 32; ++w) {
        sum += w < warp ? warp_sums[w] : 0;
        base += warp_sums[w];
    }
    return sum;
}

// Sums degrees[start ...] of `count` units up to and including each of them, with a block of BLOCK.
__device__ inline void sum_degrees(unsigned start, unsigned count, const int* degrees, int* ends,
                                   unsigned* warp_sums)
{
    unsigned base = 0;
    for (unsigned step = 0; step < count; step += BLOCK) {
        const unsigned offset = step + threadIdx.x;
        const bool is_unit = offset < count;
        const unsigned degree = is_unit ? unsigned(degrees[start + offset]) : 0;
        const unsigned sum = block_scan(warp_sums, degree, base);
        if (is_unit)
            ends[start + offset] = int(sum);
        __syncthreads();
    }
}

// The sum over all threads of a block of BLOCK, always added in the same order.
template <typename T> __device__ inline T block_sum(T* shared, T value)
{
    __syncthreads();
    if (threadIdx.x < BLOCK)
        shared[threadIdx.x] = value;
    for (unsigned stride = BLOCK / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride)
            shared[threadIdx.x] += shared[threadIdx.x + stride];
    }
    __syncthreads();
    return shared[0];
}
