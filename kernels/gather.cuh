// Goes through the sorted atoms around a position or a box with a warp. The warp joins up to 32
// runs of sorted atoms into one sequence, and takes 32 atoms of it at a time.
#pragma once
#include "cells.cuh"
#include "vector.cuh"
#include "work.cuh"

__device__ inline int warp_min(int value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, value);
#else
    for (unsigned stride = 16; stride > 0; stride /= 2)
        value = min(value, __shfl_xor_sync(~0u, value, stride));
    return value;
#endif
}

__device__ inline unsigned warp_or(unsigned value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(~0u, value);
#else
    for (unsigned stride = 16; stride > 0; stride /= 2)
        value |= __shfl_xor_sync(~0u, value, stride);
    return value;
#endif
}

// The distance of a value from the interval 0 ... edge.
__device__ inline float outside(float value, float edge)
{
    return value - fminf(fmaxf(value, 0.0f), edge);
}

// The sequence of the sorted atoms of up to 32 runs, one run per lane; empty runs come last.
struct Laid {
    // The end of the lane's run in the sequence, and the offset from the sequence to the sorted
    // atoms.
    unsigned ends, to_cells, total;

    // `places` is [32].
    __device__ inline Laid(const Runs& runs, unsigned first, const unsigned* start, uint2* places)
    {
        unsigned begin = 0, end = 0;
        if (first + lane() < runs.count)
            runs.get(first + lane(), start, begin, end);
        ends = warp_scan(end - begin);
        total = __shfl_sync(~0u, ends, 31);
        to_cells = end - ends;
        // Empty runs would hide others with the same end.
        const unsigned some = __ballot_sync(~0u, begin < end);
        if (begin < end)
            places[before(some)] = {ends, to_cells};
        __syncwarp();
        const uint2 place = places[lane()];
        ends = lane() < __popc(some) ? place.x : ~0u;
        to_cells = place.y;
        __syncwarp();
    }

    // The sorted atom at index `step` + lane of the sequence.
    __device__ inline unsigned sorted_atom(unsigned step) const
    {
        const unsigned passed = __popc(__ballot_sync(~0u, ends <= step));
        const unsigned end_in_step = ends - step;
        const unsigned end_here = warp_or(end_in_step - 1 < 31 ? 1u << end_in_step : 0);
        const unsigned run = passed + __popc(end_here & (2u << lane()) - 1);
        return step + lane() + __shfl_sync(~0u, to_cells, run);
    }
};

// A warp's shared memory for a `Laid`.
struct Places { uint2 scratch[32]; };

// Calls visit(has_atom, sorted) for 32 sorted atoms at a time, one per lane, until all atoms within
// `reach` of a position have been visited, and some farther ones. A lane without an atom gets
// has_atom == false. `places` is [32].
template <typename Visit>
__device__ inline void each_candidate(const Cells& cells, const Grid& grid, Atom atom, int reach,
                                      uint2* places, Visit visit)
{
    const Runs runs(grid, position(atom), position(atom), reach);
    for (unsigned first = 0; first < runs.count; first += 32) {
        const Laid laid(runs, first, cells.start, places);
        for (unsigned step = 0; step < laid.total; step += 32) {
            const unsigned sorted = laid.sorted_atom(step);
            visit(step + lane() < laid.total, sorted);
        }
    }
}

// The box around atoms, one per lane.
struct Box {
    Position low, high;

    __device__ inline Box(int x, int y, int z)
        : low{warp_min(x), warp_min(y), warp_min(z)},
          high{-warp_min(-x), -warp_min(-y), -warp_min(-z)}
    {
    }

    // Its longest edge.
    __device__ inline int edge() const
    {
        return max(high.x - low.x, max(high.y - low.y, high.z - low.z));
    }
};

// Calls keep(place, atom, x, y, z) for every sorted atom within `reach` of the box, or a little
// farther, for which want(atom) is true. `atom` is what load(sorted) returned for the sorted atom;
// x, y, z are relative to the box's low corner; `place` counts up. Returns the number of kept
// atoms. Before it exceeds `room`, full(count) is called, which returns how many atoms stay, or
// more than `room` to stop. `places` is [32].
template <typename Load, typename Want, typename Keep, typename Full>
__device__ inline unsigned gather(const Cells& cells, const Grid& grid, const Box& box, int reach,
                                  unsigned room, uint2* places, Load load, Want want, Keep keep,
                                  Full full)
{
    const Position low = box.low, high = box.high;
    const float reach2 = float(reach) * float(reach);
    const float edge_x = float(high.x - low.x), edge_y = float(high.y - low.y),
                edge_z = float(high.z - low.z);
    const Runs runs(grid, low, high, reach);
    unsigned count = 0;
    __syncwarp();
    for (unsigned first = 0; first < runs.count; first += 32) {
        const Laid laid(runs, first, cells.start, places);
        for (unsigned step = 0; step < laid.total; step += 32) {
            const unsigned sorted = laid.sorted_atom(step);
            float x = 0.0f, y = 0.0f, z = 0.0f;
            decltype(load(sorted)) atom{};
            bool wanted = false;
            if (step + lane() < laid.total) {
                // Loads the atom before it is known to be near, because the latency is longer than
                // the work.
                atom = load(sorted);
                x = float(cells.x[sorted] - low.x);
                y = float(cells.y[sorted] - low.y);
                z = float(cells.z[sorted] - low.z);
                const float dx = outside(x, edge_x), dy = outside(y, edge_y),
                            dz = outside(z, edge_z);
                wanted = __fmaf_rn(dx, dx, __fmaf_rn(dy, dy, dz * dz)) < reach2 && want(atom);
            }
            const unsigned found = __ballot_sync(~0u, wanted);
            if (count + __popc(found) > room) {
                count = full(count);
                if (count > room)
                    return count;
            }
            if (wanted)
                keep(count + before(found), atom, x, y, z);
            count += __popc(found);
        }
    }
    __syncwarp();
    return count;
}
