#include "cells.cuh"
#include "contact_list.cuh"
#include "work.cuh"

#ifdef FUSED
constexpr unsigned EIGEN_THREADS = BLOCK;
#else
constexpr unsigned EIGEN_THREADS = 512;
#endif
// Residues of a thread whose values are kept while others are still reading, and of
// a chain whose vector fits shared memory.
constexpr unsigned EIGEN_ROWS = 2048 / BLOCK, EIGEN_SHARED = EIGEN_ROWS * EIGEN_THREADS;
// Steps from one scaling to the next, in which values of residues with lists grow by
// less than 2^41.
constexpr unsigned EIGEN_UNSCALED = 8;

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

// The sum of f(m) for all m below `count`, added as BLOCK threads would.
template <typename Value>
__device__ inline double sum_of(double* shared, unsigned count, Value value)
{
    double sum = 0.0;
    __syncthreads();
    for (unsigned m = threadIdx.x; m < count && threadIdx.x < BLOCK; m += BLOCK)
        sum += value(m);
    return block_sum(shared, sum);
}

// One step of A + I from `values`, which are in shared memory.
__device__ inline void step_in_place(const ChainGraph& graph, double* values)
{
    double next[EIGEN_ROWS];
#pragma unroll
    for (unsigned row = 0; row < EIGEN_ROWS; ++row) {
        const unsigned m = row * EIGEN_THREADS + threadIdx.x;
        if (m < graph.count)
            next[row] = graph.add_contacts(values[m], values, m);
    }
    __syncthreads();
#pragma unroll
    for (unsigned row = 0; row < EIGEN_ROWS; ++row) {
        const unsigned m = row * EIGEN_THREADS + threadIdx.x;
        if (m < graph.count)
            values[m] = next[row];
    }
    __syncthreads();
}

// The same from `values` to `next`, anywhere.
__device__ inline void step(const ChainGraph& graph, const double* values, double* next)
{
    for (unsigned m = threadIdx.x; m < graph.count; m += EIGEN_THREADS)
        next[m] = graph.add_contacts(values[m], values, m);
    __syncthreads();
}

// The eigenvector of the largest eigenvalue of each chain's contacts A, after
// `steps` steps of A + I from a uniform vector, scaled to unit length in the end and
// whenever values may have grown large; and the length of A v - (v . A v) v. One
// block a chain. `scratch` has two doubles a residue, `neighbours` room for a list
// and its length a residue.
KERNEL(EIGEN_THREADS)
eigenvector(const unsigned* header, const Structure* structures, const Chain* chains,
            const unsigned* members, const Atom* atoms, CELL_PARAMS, const unsigned* lists,
            const unsigned* degrees, unsigned* places, unsigned* neighbours, double* scratch,
            float* vectors, float* residuals, unsigned radius, unsigned steps)
{
    __shared__ double shared[BLOCK], shared_values[EIGEN_SHARED];
    each_block(header, CHAINS, [&](unsigned of_chain) {
        const Chain chain = chains[of_chain];
        const unsigned count = chain.count;
        const bool fits = count <= EIGEN_SHARED;
        double* next = scratch + 2 * chain.member_start;
        double* values = fits ? shared_values : next + count;
        const unsigned* own = members + chain.member_start;
        unsigned* near = neighbours + (CONTACTS_MAX + 1) * chain.member_start;
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
            places[own[m]] = m;
        __syncthreads();

        bool is_crowded = false;
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            const unsigned residue = own[m], degree = degrees[residue];
            near[m] = degree;
            for (unsigned k = 0; k < degree && degree <= CONTACTS_MAX; ++k)
                near[(k + 1) * count + m] = places[lists[CONTACTS_MAX * residue + k]];
            is_crowded |= degree > CONTACTS_MAX;
            values[m] = present(atoms[residue]) ? 1.0 : 0.0;
        }
        const unsigned unscaled = __syncthreads_or(is_crowded) ? 1 : EIGEN_UNSCALED;
        const ChainGraph graph{atoms, own, near, places, count, radius, CELLS_OF_PARAMS,
                               structures[chain.structure].residue_grid};
        const auto scale = [&] {
            const double squares =
                sum_of(shared, count, [&](unsigned m) { return values[m] * values[m]; });
            const double factor = 1.0 / sqrt(squares);
            for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
                values[m] *= factor;
            __syncthreads();
            return factor;
        };
        double factor = scale();
        for (unsigned taken = 0; taken < steps;) {
            if (fits) {
                step_in_place(graph, values);
            } else {
                step(graph, values, next);
                double* last = values;
                values = next;
                next = last;
            }
            if (++taken % unscaled == 0 || taken == steps)
                factor = scale();
        }

        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
            vectors[own[m]] = present(atoms[own[m]]) ? float(values[m]) : null_real();
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
            next[m] = graph.add_contacts(0.0, values, m);
        const double eigenvalue =
            sum_of(shared, count, [&](unsigned m) { return values[m] * next[m]; });
        const double squares = sum_of(shared, count, [&](unsigned m) {
            const double rest = next[m] - eigenvalue * values[m];
            return rest * rest;
        });
        if (threadIdx.x == 0) {
            // Without a C-alpha the factor is infinite.
            const bool any = factor < 1.0 / 0.0 && count > 0;
            residuals[of_chain] = any ? float(sqrt(squares)) : null_real();
        }
    });
}
