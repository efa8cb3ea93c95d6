#include "layout.cuh"

constexpr unsigned RG_THREADS = 256;

// Root mean square distance of atoms, all of one weight, from their mean, in A;
// one block a structure. `axis` says whether the atoms are all of a structure's or
// one a residue; missing ones are skipped.
extern "C" __global__ void __launch_bounds__(RG_THREADS)
radius_of_gyration(const unsigned* header, const Structure* structures, const Atom* atoms,
                   float* radii, unsigned axis)
{
    if (blockIdx.x >= header[STRUCTURES])
        return;
    const Structure& structure = structures[blockIdx.x];
    const unsigned start = axis == ATOMS ? structure.atom_start : structure.residue_start;
    const unsigned length = axis == ATOMS ? structure.atom_count : structure.residue_count;
    const Atom* own = atoms + start;

    __shared__ long long sums[RG_THREADS];
    long long x = 0, y = 0, z = 0, count = 0;
    for (unsigned i = threadIdx.x; i < length; i += RG_THREADS) {
        const Atom p = own[i];
        if (present(p)) {
            x += p.x;
            y += p.y;
            z += p.z;
            ++count;
        }
    }
    count = block_sum<RG_THREADS>(sums, count);
    const double n = double(count);
    const double mean_x = double(block_sum<RG_THREADS>(sums, x)) / n;
    const double mean_y = double(block_sum<RG_THREADS>(sums, y)) / n;
    const double mean_z = double(block_sum<RG_THREADS>(sums, z)) / n;

    __shared__ double squares[RG_THREADS];
    double square = 0.0;
    for (unsigned i = threadIdx.x; i < length; i += RG_THREADS) {
        const Atom p = own[i];
        if (present(p)) {
            const double dx = double(p.x) - mean_x;
            const double dy = double(p.y) - mean_y;
            const double dz = double(p.z) - mean_z;
            square += dx * dx + dy * dy + dz * dz;
        }
    }
    square = block_sum<RG_THREADS>(squares, square);
    if (threadIdx.x == 0)
        radii[blockIdx.x] = count > 0 ? float(sqrt(square / n) * 0.001) : null_real();
}
