// The radius of gyration of the atoms that a block goes through.
#pragma once
#include "work.cuh"

// sum / count, rounded down.
__device__ inline long long floor_mean(long long sum, long long count)
{
    return sum / count - (sum % count < 0);
}

// The root mean square distance of atoms from their mean, in A, without weights. `for_each(f)`
// calls f with each present atom of the thread.
//
// All sums are of integers, relative to the mean rounded down, so that neither the order of atoms
// nor a translation changes a bit.
template <typename ForEach>
__device__ inline float radius_of_atoms(ForEach for_each)
{
    __shared__ long long shared[BLOCK];
    long long x = 0, y = 0, z = 0, count = 0;
    for_each([&](Atom p) {
        x += p.x;
        y += p.y;
        z += p.z;
        ++count;
    });
    count = block_sum(shared, count);
    x = block_sum(shared, x);
    y = block_sum(shared, y);
    z = block_sum(shared, z);
    if (count == 0)
        return null_real();
    const long long below_x = floor_mean(x, count);
    const long long below_y = floor_mean(y, count);
    const long long below_z = floor_mean(z, count);

    // A sum of squares has up to 76 bits.
    long long low = 0, high = 0;
    for_each([&](Atom p) {
        const long long dx = p.x - below_x, dy = p.y - below_y, dz = p.z - below_z;
        const long long square = dx * dx + dy * dy + dz * dz;
        low += square & 0xffffffff;
        high += square >> 32;
    });
    low = block_sum(shared, low);
    high = block_sum(shared, high);
    const double n = double(count);
    const double rest_x = double(x - below_x * count) / n;
    const double rest_y = double(y - below_y * count) / n;
    const double rest_z = double(z - below_z * count) / n;
    const double rest = rest_x * rest_x + rest_y * rest_y + rest_z * rest_z;
    const double mean = (double(high) * 4294967296.0 + double(low)) / n;
    return float(sqrt(mean - rest) * 0.001);
}
