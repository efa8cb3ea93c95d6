#include "cells.cuh"
#include "contact_list.cuh"
#include "work.cuh"

#ifdef FUSED
constexpr unsigned EIGEN_THREADS = BLOCK;
#else
constexpr unsigned EIGEN_THREADS = 512;
#endif
// The largest number of residues of a thread whose values fit its registers, and of a chain whose
// vector fits shared memory.
constexpr unsigned EIGEN_ROWS = 2048 / BLOCK, EIGEN_SHARED = EIGEN_ROWS * EIGEN_THREADS;
// Steps between two normalisations. In so many steps values of residues with lists grow by less
// than 2^41.
constexpr unsigned EIGEN_UNSCALED = 8;

// The fixed-point representation of 1. Vectors in fixed point are normalised in each step, and a
// residue has less than 2^20 contacts, so sums fit 63 bits.
constexpr double WHOLE = 4194304.0;

// The contacts of a chain's residues, as indices into the chain. Each list follows its length.
// Lists are interleaved, so that the reads of threads with neighbouring residues coalesce.
struct ChainGraph {
    const Atom* atoms;
    const unsigned *members, *places;
    unsigned *lists, count, radius;
    Cells cells;
    const Grid& grid;

    // Lists are packed if indices fit 16 bits, including the index of a value that is always 0: two
    // indices per word, read four words at a time.
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

    // `sum` plus the values of a residue's contacts, added in list order.
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

    // The same for a residue with too many contacts for a list, which proteins do not have. The sum
    // is in fixed point, so the order does not matter.
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

// The sum of f(m) for all m below `count`, in the order of a block of BLOCK threads.
template <typename Value>
__device__ inline double sum_of(double* shared, unsigned count, Value value)
{
    double sum = 0.0;
    __syncthreads();
    for (unsigned m = threadIdx.x; m < count && threadIdx.x < BLOCK; m += BLOCK)
        sum += value(m);
    return block_sum(shared, sum);
}

// The storage of a chain's vector: one vector in shared memory. Threads keep new values in
// registers until no thread reads the old ones.
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

// The storage of a long chain's vector: two vectors in global memory.
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

// The outputs for a chain.
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
        // If no residue has a C-alpha, the factor is infinite.
        const bool any = factor < 1.0 / 0.0 && count > 0;
        if (threadIdx.x == 0)
            *residual = any ? float(sqrt(squares)) : null_real();
    }
};

// Computes for each chain the eigenvector v of the largest eigenvalue of its contact matrix A:
// `steps` steps of power iteration with A + I from a uniform vector, normalised at the end and
// before values grow too large. Also computes the residual, the length of A v - (v . A v) v. One
// block per chain. `scratch` is [residues, 3], and `neighbours` has room for a list and its length
// per residue.
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
