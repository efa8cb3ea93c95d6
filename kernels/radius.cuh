// The radius of gyration of the atoms that a block goes through.
#pragma once
#include "work.cuh"

// Root mean square distance of atoms, all of one weight, from their mean, in A.
// `for_each` calls what it is given with each present atom of the thread, always in
// the same order.
template <typename ForEach>
__device__ inline float radius_of_atoms(ForEach for_each)
{
    __shared__ long long sums[BLOCK];
    long long x = 0, y = 0, z = 0, count = 0;
    for_each([&](Atom p) {
        x += p.x;
        y += p.y;
        z += p.z;
        ++count;
    });
    count = block_sum(sums, count);
    const double n = double(count);
    const double mean_x = double(block_sum(sums, x)) / n;
    const double mean_y = double(block_sum(sums, y)) / n;
    const double mean_z = double(block_sum(sums, z)) / n;

    __shared__ double squares[BLOCK];
    double square = 0.0;
    for_each([&](Atom p) {
        const double dx = double(p.x) - mean_x;
        const double dy = double(p.y) - mean_y;
        const double dz = double(p.z) - mean_z;
        square += dx * dx + dy * dy + dz * dz;
    });
    square = block_sum(squares, square);
    return count > 0 ? float(sqrt(square / n) * 0.001) : null_real();
}
