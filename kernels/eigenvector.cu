#include "cells.cuh"
#include "contact_list.cuh"

constexpr unsigned EIGEN_THREADS = 256;
// Residues of a chain whose vectors fit shared memory.
constexpr unsigned EIGEN_SHARED = 2048;

// Values as whole numbers: so many make 1. Values are at most the number of
// residues, 2^20, as are a residue's contacts, so that sums fit 63 bits.
constexpr double WHOLE = 4194304.0;

// The contacts of a chain's residues, by their places in the chain, each list after
// its length. Lists stand side by side, so that threads that take neighbouring
// residues read together.
struct ChainGraph {
    const Atom* atoms;
    const unsigned *members, *lists, *places;
    unsigned count, radius;
    Cells cells;
    const Grid& grid;

    // `sum` and the values of a residue's contacts, added in their order.
    __device__ inline double add_contacts(double sum, const double* values, unsigned own) const
    {
        const unsigned degree = lists[own];
        if (degree <= CONTACTS_MAX) {
#pragma unroll 4
            for (unsigned k = 1; k <= degree; ++k)
                sum += values[lists[k * count + own]];
            return sum;
        }
        // Too many for a list, which proteins do not have. Whole numbers sum to the
        // same in any order.
        const unsigned residue = members[own];
        const Atom atom = atoms[residue];
        const Runs runs(grid, atom.x, atom.y, atom.z, radius);
        long long total = 0;
        for (unsigned run = 0; run < runs.count; ++run) {
            unsigned begin, end;
            runs.get(run, cells.start, begin, end);
            for (unsigned k = begin; k < end; ++k) {
                const unsigned d2 = squared(cells.x[k] - atom.x, cells.y[k] - atom.y,
                                            cells.z[k] - atom.z);
                if (d2 < radius * radius && cells.source[k] != residue
                    && same_chain(cells.tag[k], atom.tag))
                    total += __double2ll_rn(values[places[cells.source[k]]] * WHOLE);
            }
        }
        return sum + double(total) / WHOLE;
    }
};

// The eigenvector of the largest eigenvalue of each chain's contacts A, after
// `steps` steps of A + I from a uniform vector, each scaled to unit length; and
// the length of A v - (v . A v) v. One block a chain. `scratch` has two doubles a
// residue, `neighbours` room for a list and its length a residue.
extern "C" __global__ void __launch_bounds__(EIGEN_THREADS)
eigenvector(const unsigned* header, const Structure* structures, const Chain* chains,
            const unsigned* members, const Atom* atoms, CELL_PARAMS, const unsigned* lists,
            const unsigned* degrees, unsigned* places, unsigned* neighbours, double* scratch,
            float* vectors, float* residuals, unsigned radius, unsigned steps)
{
    if (blockIdx.x >= header[CHAINS])
        return;
    const Chain chain = chains[blockIdx.x];
    __shared__ double shared[EIGEN_THREADS], shared_values[2 * EIGEN_SHARED];
    const unsigned count = chain.count;
    double* values = count <= EIGEN_SHARED ? shared_values : scratch + 2 * chain.member_start;
    double* next = values + count;
    members += chain.member_start;
    neighbours += (CONTACTS_MAX + 1) * chain.member_start;
    for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
        places[members[m]] = m;
    __syncthreads();

    double squares = 0.0;
    for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
        const unsigned residue = members[m], degree = degrees[residue];
        neighbours[m] = degree;
        for (unsigned k = 0; k < degree && degree <= CONTACTS_MAX; ++k)
            neighbours[(k + 1) * count + m] = places[lists[CONTACTS_MAX * residue + k]];
        values[m] = present(atoms[residue]) ? 1.0 : 0.0;
        squares += values[m];
    }
    const ChainGraph graph{atoms, members, neighbours, places, count, radius, CELLS_OF_PARAMS,
                           structures[chain.structure].residue_grid};
    // Values are scaled when they are read next.
    double scale = 1.0 / sqrt(block_sum<EIGEN_THREADS>(shared, squares));
    for (unsigned step = 0; step < steps; ++step) {
        squares = 0.0;
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            next[m] = graph.add_contacts(values[m], values, m) * scale;
            squares += next[m] * next[m];
        }
        scale = 1.0 / sqrt(block_sum<EIGEN_THREADS>(shared, squares));
        double* last = values;
        values = next;
        next = last;
    }

    for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
        values[m] *= scale;
        const unsigned residue = members[m];
        vectors[residue] = present(atoms[residue]) ? float(values[m]) : null_real();
    }
    __syncthreads();
    double product = 0.0;
    for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
        next[m] = graph.add_contacts(0.0, values, m);
        product += values[m] * next[m];
    }
    const double eigenvalue = block_sum<EIGEN_THREADS>(shared, product);
    squares = 0.0;
    for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
        const double rest = next[m] - eigenvalue * values[m];
        squares += rest * rest;
    }
    squares = block_sum<EIGEN_THREADS>(shared, squares);
    if (threadIdx.x == 0) {
        // Without a C-alpha the scale is infinite.
        const bool any = scale < 1.0 / 0.0 && count > 0;
        residuals[blockIdx.x] = any ? float(sqrt(squares)) : null_real();
    }
}
