#include "cells.cuh"
#include "contact_list.cuh"
#include "work.cuh"

#ifdef FUSED
constexpr unsigned EIGEN_THREADS = BLOCK;
#else
constexpr unsigned EIGEN_THREADS = 512;
#endif
// Residues of a thread whose values are kept while others are still reading, and of a chain whose
// vector fits shared memory.
constexpr unsigned EIGEN_ROWS = 2048 / BLOCK, EIGEN_SHARED = EIGEN_ROWS * EIGEN_THREADS;
// Steps from one scaling to the next, in which values of residues with lists grow by less than
// 2^41.
constexpr unsigned EIGEN_UNSCALED = 8;

// Values as whole numbers: so many make 1. Where they are in use, the vector has unit length, as
// each step is scaled; a residue has less than 2^20 contacts, and sums fit 63 bits.
constexpr double WHOLE = 4194304.0;

// The contacts of a chain's residues, by their places in the chain, each list after its length.
// Lists stand side by side, so that threads that take neighbouring residues read together.
struct ChainGraph {
    const Atom* atoms;
    const unsigned *members, *places;
    unsigned *lists, count, radius;
    Cells cells;
    const Grid& grid;

    // Lists are packed where places fit 16 bits, and so does the one of a value that is always 0:
    // two places a word, and four words at a time.
    static constexpr unsigned TOGETHER = 4;

    template <bool PACKED>
    __device__ inline void set(unsigned own, const unsigned* contacts, unsigned degree) const
    {
        lists[own] = degree;
        if (degree > CONTACTS_MAX)
            return;
        if constexpr (!PACKED) {
            for (unsigned k = 0; k < degree; ++k)
                lists[(k + 1) * count + own] = places[contacts[k]];
        } else {
            const auto place = [&](unsigned k) {
                return k < degree ? places[contacts[k]] : count;
            };
            for (unsigned k = 0; k < degree; k += 2 * TOGETHER)
                for (unsigned w = 0; w < TOGETHER; ++w)
                    lists[(k / 2 + w + 1) * count + own] =
                        place(k + 2 * w) | place(k + 2 * w + 1) << 16;
        }
    }

    // `sum` and the values of a residue's contacts, added in their order.
    template <bool PACKED>
    __device__ inline double add_contacts(double sum, const double* values, unsigned own) const
    {
        const unsigned degree = lists[own];
        if (degree > CONTACTS_MAX)
            return add_crowd(sum, values, own);
        if constexpr (!PACKED) {
            for (unsigned k = 1; k <= degree; ++k)
                sum += values[lists[k * count + own]];
        } else {
            for (unsigned k = 0; k < degree; k += 2 * TOGETHER) {
                unsigned words[TOGETHER];
#pragma unroll
                for (unsigned w = 0; w < TOGETHER; ++w)
                    words[w] = lists[(k / 2 + w + 1) * count + own];
#pragma unroll
                for (unsigned w = 0; w < TOGETHER; ++w) {
                    sum += values[words[w] & 0xffff];
                    sum += values[words[w] >> 16];
                }
            }
        }
        return sum;
    }

    // The same where there are too many for a list, which proteins do not have. Whole numbers sum
    // to the same in any order.
    __device__ inline double add_crowd(double sum, const double* values,
                                             unsigned own) const
    {
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

// Where a chain's vector is: in shared memory, and values are kept until no other thread reads the
// last ones.
struct SharedVector {
    static constexpr bool PACKED = true;
    double* values;

    __device__ inline void step(const ChainGraph& graph)
    {
        double next[EIGEN_ROWS];
#pragma unroll
        for (unsigned row = 0; row < EIGEN_ROWS; ++row) {
            const unsigned m = row * EIGEN_THREADS + threadIdx.x;
            if (m < graph.count)
                next[row] = graph.add_contacts<true>(values[m], values, m);
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
};

// Or two in global memory.
struct GlobalVector {
    static constexpr bool PACKED = false;
    double *values, *next;

    __device__ inline void step(const ChainGraph& graph)
    {
        for (unsigned m = threadIdx.x; m < graph.count; m += EIGEN_THREADS)
            next[m] = graph.add_contacts<false>(values[m], values, m);
        __syncthreads();
        double* last = values;
        values = next;
        next = last;
    }
};

// What to write of a chain.
struct Centrality {
    const unsigned *lists, *degrees;
    float *vectors, *residual;
    unsigned steps;

    template <typename Vector>
    __device__ inline void compute(const ChainGraph& graph, Vector vector, double* image,
                                   double* shared) const
    {
        const unsigned count = graph.count;
        bool is_crowded = false;
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            const unsigned residue = graph.members[m];
            graph.set<Vector::PACKED>(m, lists + CONTACTS_MAX * residue, degrees[residue]);
            is_crowded |= degrees[residue] > CONTACTS_MAX;
            vector.values[m] = present(graph.atoms[residue]) ? 1.0 : 0.0;
        }
        const unsigned unscaled = __syncthreads_or(is_crowded) ? 1 : EIGEN_UNSCALED;
        const auto scale = [&] {
            double* values = vector.values;
            const double squares =
                sum_of(shared, count, [&](unsigned m) { return values[m] * values[m]; });
            const double factor = 1.0 / sqrt(squares);
            for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
                values[m] *= factor;
            __syncthreads();
            return factor;
        };
        double factor = scale();
        for (unsigned taken = 1; taken <= steps; ++taken) {
            vector.step(graph);
            if (taken % unscaled == 0 || taken == steps)
                factor = scale();
        }

        const double* values = vector.values;
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            const unsigned residue = graph.members[m];
            vectors[residue] = present(graph.atoms[residue]) ? float(values[m]) : null_real();
            image[m] = graph.add_contacts<Vector::PACKED>(0.0, values, m);
        }
        const double eigenvalue =
            sum_of(shared, count, [&](unsigned m) { return values[m] * image[m]; });
        const double squares = sum_of(shared, count, [&](unsigned m) {
            const double rest = image[m] - eigenvalue * values[m];
            return rest * rest;
        });
        // Without a C-alpha the factor is infinite.
        const bool any = factor < 1.0 / 0.0 && count > 0;
        if (threadIdx.x == 0)
            *residual = any ? float(sqrt(squares)) : null_real();
    }
};

// The eigenvector of the largest eigenvalue of each chain's contacts A, after `steps` steps of A +
// I from a uniform vector, scaled to unit length in the end and whenever values may have grown
// large; and the length of A v - (v . A v) v. One block a chain. `scratch` has three doubles a
// residue, `neighbours` room for a list and its length a residue.
KERNEL(EIGEN_THREADS)
eigenvector(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
            const unsigned* members, const Atom* atoms, CELL_PARAMS, const unsigned* lists,
            const unsigned* degrees, unsigned* places, unsigned* neighbours, double* scratch,
            float* vectors, float* residuals, unsigned radius, unsigned steps)
{
    __shared__ double shared[BLOCK], values[EIGEN_SHARED + 1];
    each_block(header, CHAINS, [&](unsigned own) {
        const ChainSpan chain = chains[own];
        const unsigned count = chain.count;
        const ChainGraph graph{atoms,
                               members + chain.member_start,
                               places,
                               neighbours + (CONTACTS_MAX + 1) * chain.member_start,
                               count,
                               radius,
                               CELLS_OF_PARAMS,
                               structures[chain.structure].residue_grid};
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
            places[graph.members[m]] = m;
        if (threadIdx.x == 0)
            values[min(count, EIGEN_SHARED)] = 0.0;
        __syncthreads();

        const Centrality centrality{lists, degrees, vectors, residuals + own, steps};
        double* image = scratch + 3 * chain.member_start;
        if (count <= EIGEN_SHARED)
            centrality.compute(graph, SharedVector{values}, image, shared);
        else
            centrality.compute(graph, GlobalVector{image + count, image + 2 * count}, image,
                               shared);
    });
}
