#include "cells.cuh"
#include "contact_list.cuh"
#include "vector.cuh"
#include "work.cuh"

// Threads of a block, and the largest chain whose vectors fit shared memory.
#ifdef FUSED
constexpr unsigned EIGEN_THREADS = BLOCK, EIGEN_SHARED = 1024;
#else
constexpr unsigned EIGEN_THREADS = 512, EIGEN_SHARED = 2816;
#endif

// Words of a residue's contacts, whole quadruples.
constexpr unsigned CONTACT_WORDS = CONTACTS_MAX + 4;

// Doubles of scratch memory for a residue: two elements each of x and of A x; as float, of the residuals
// and of the two vectors that shared memory may have no room for; and one more, so that the memory of each
// chain begins with a whole double2.
constexpr unsigned EIGEN_SCRATCH = 8;

// Sums over a chain have this many partial sums, whatever the number of threads: residue m belongs
// to partial sum m % EIGEN_LANES. A thread holds EIGEN_SLOTS of them.
constexpr unsigned EIGEN_LANES = 512, EIGEN_GROUPS = EIGEN_LANES / 32;
constexpr unsigned EIGEN_SLOTS = EIGEN_LANES / EIGEN_THREADS;

// The constants of the iteration; src/features/centrality/eigenvector.rs explains them.
constexpr double RESIDUAL = 5e-7, VECTOR_ERROR = 3e-5, GAP = 1e-6, DEPENDENT = 1e-12;
constexpr double UPPER_FIRST = 0.7, UPPER_MIN = 0.3, UPPER_MAX = 0.9999, LOWER = -0.4;
constexpr double GAIN_MAX = 1000.0, GAIN_SPARE = 10.0;
constexpr unsigned DEGREE_FIRST = 8, DEGREE_MAX = 32;

// The values of a residue in two vectors.
template <typename T> struct Two { T one, two; };

// A pseudo-random number from 0 to 1, excluding 1.
__device__ inline float eigen_random(unsigned value)
{
    value *= 0x9e3779b9u;
    value = (value ^ value >> 16) * 0x85ebca6bu;
    value = (value ^ value >> 13) * 0xc2b2ae35u;
    return float((value ^ value >> 16) >> 8) / 16777216.0f;
}

// Calls take(m, slot) for each of the thread's residues of a chain; `slot` is the thread's partial
// sum that residue m belongs to.
template <typename Take> __device__ inline void each_row(unsigned count, Take take)
{
    for (unsigned first = threadIdx.x; first < count; first += EIGEN_LANES)
#pragma unroll
        for (unsigned slot = 0; slot < EIGEN_SLOTS; ++slot)
            if (first + slot * EIGEN_THREADS < count)
                take(first + slot * EIGEN_THREADS, slot);
}

// The contacts of a chain's residues. Those with residues up to LOCAL places away are bits of the
// residue's first word, whose reads of the vectors have no bank conflicts; the others are a list.
// Lists are interleaved, so that the reads of threads with neighbouring residues coalesce.
struct ChainGraph {
    const Atom* atoms;
    const unsigned *members, *places;
    unsigned *lists, count, radius;
    Cells cells;
    const Grid& grid;

    // Bit LOCAL + distance stands for a contact at this distance along the chain; the bits above
    // FAR are the length of the list.
    static constexpr int LOCAL = 4;
    static constexpr unsigned FAR = 16, CROWDED = ~0u;

    // Chains that fit shared memory and have no crowded residue have their vectors there. Then a
    // contact is 16 bits, the offset of its values in bytes. The first quadruple of words has the
    // first word and 6 contacts, each further quadruple 8; the unused rest of the last quadruple
    // has offsets of values that are 0.
    static constexpr unsigned FIRST = 6, TOGETHER = 8;

    template <bool PACKED>
    __device__ inline void set(unsigned m, const unsigned* contacts, unsigned degree) const
    {
        // The offset of a residue's values in bytes.
        const auto offset_of = [](unsigned place) { return place * unsigned(sizeof(float2)); };
        const unsigned none = offset_of(count);
        unsigned mask = 0, length = 0, pair = 0;
        const auto word_of = [&](unsigned k) -> unsigned& {
            if constexpr (!PACKED)
                return lists[(k + 1) * count + m];
            const unsigned word = k / 2 + 1;
            return lists[4 * (word / 4 * count + m) + word % 4];
        };
        for (unsigned k = 0; k < degree && degree <= CONTACTS_MAX; ++k) {
            const unsigned place = places[contacts[k]];
            const int along = int(place - m);
            if (abs(along) <= LOCAL) {
                mask |= 1u << (LOCAL + along);
            } else if constexpr (!PACKED) {
                word_of(length++) = place;
            } else {
                pair = length % 2 ? (pair & 0xffff) | offset_of(place) << 16
                                  : offset_of(place) | none << 16;
                word_of(length++) = pair;
            }
        }
        if constexpr (PACKED)
            for (unsigned k = (length + 1) / 2 * 2; k < FIRST || (k - FIRST) % TOGETHER; k += 2)
                word_of(k) = none | none << 16;
        const bool is_crowded = !PACKED && degree > CONTACTS_MAX;
        lists[(PACKED ? 4 : 1) * m] = is_crowded ? CROWDED : mask | length << FAR;
    }

    // The sums of a residue's contacts in two vectors, added in the order of bits and list.
    template <typename T, typename Vectors>
    __device__ inline Two<T> sum_of_contacts(const Vectors& vectors, unsigned m) const
    {
        const float2* values = vectors.now;
        Two<T> sum{T(0), T(0)};
        const auto add = [&](float2 value) {
            sum.one += T(value.x);
            sum.two += T(value.y);
        };
        const auto add_local = [&](unsigned mask) {
#pragma unroll
            for (int along = -LOCAL; along <= LOCAL; ++along)
                if (mask >> (LOCAL + along) & 1)
                    add(values[int(m) + along]);
        };
        if constexpr (Vectors::PACKED) {
            const auto add_pair = [&](unsigned word) {
                add(*(const float2*)((const char*)values + (word & 0xffff)));
                add(*(const float2*)((const char*)values + (word >> 16)));
            };
            uint4 words = ((const uint4*)lists)[m];
            const unsigned first = words.x;
            add_local(first);
            add_pair(words.y);
            add_pair(words.z);
            add_pair(words.w);
            const unsigned length = first >> FAR;
            unsigned quadruple = m + count;
            for (unsigned k = FIRST; k < length; k += TOGETHER, quadruple += count) {
                words = ((const uint4*)lists)[quadruple];
                add_pair(words.x);
                add_pair(words.y);
                add_pair(words.z);
                add_pair(words.w);
            }
        } else {
            const unsigned first = lists[m];
            if (first == CROWDED)
                return sum_of_crowd<T>(vectors, m);
            add_local(first);
            for (unsigned k = 1; k <= first >> FAR; ++k)
                add(values[lists[k * count + m]]);
        }
        return sum;
    }

    // The same for a residue with too many contacts for a list, which proteins do not have. The
    // sums are in fixed point with 40 bits for the vectors' largest value, so the order does not
    // matter; less than 2^20 contacts fit 63 bits.
    template <typename T, typename Vectors>
    __device__ inline Two<T> sum_of_crowd(const Vectors& vectors, unsigned m) const
    {
        const unsigned residue = members[m];
        const Atom atom = atoms[residue];
        const Runs runs(grid, position(atom), position(atom), radius);
        const int shift = 166 - int(*vectors.now_largest >> 23);
        const double whole = power_of_two(shift), part = power_of_two(-shift);
        long long one = 0, two = 0;
        for (unsigned run = 0; run < runs.count; ++run) {
            unsigned begin, end;
            runs.get(run, cells.start, begin, end);
            for (unsigned k = begin; k < end; ++k) {
                const unsigned d2 = squared(cells.x[k] - atom.x, cells.y[k] - atom.y,
                                            cells.z[k] - atom.z);
                if (d2 >= radius * radius || cells.source[k] == residue
                    || !same_chain(cells.tag[k], atom.tag))
                    continue;
                const float2 value = vectors.now[places[cells.source[k]]];
                one += __double2ll_rn(double(value.x) * whole);
                two += __double2ll_rn(double(value.y) * whole);
            }
        }
        return {T(double(one) * part), T(double(two) * part)};
    }

    __device__ static inline double power_of_two(int exponent)
    {
        return __longlong_as_double((long long)(1023 + exponent) << 52);
    }
};

// Two vectors, and room for the next two. If `is_crowded`, also stores the bits of the largest
// absolute value. Packed vectors belong to a chain without crowded residues.
template <bool IS_PACKED> struct Vectors {
    static constexpr bool PACKED = IS_PACKED;
    float2 *now, *next;
    unsigned *now_largest, *next_largest;
    bool is_crowded;

    __device__ inline void set_next(unsigned m, float2 value) const
    {
        next[m] = value;
        if (!PACKED && is_crowded)
            atomicMax(next_largest, __float_as_uint(fmaxf(fabsf(value.x), fabsf(value.y))));
    }

    // Makes the next vectors the current ones, once all threads have set them.
    __device__ inline void turn()
    {
        __syncthreads();
        float2* values = now;
        now = next;
        next = values;
        if (PACKED || !is_crowded)
            return;
        unsigned* largest = now_largest;
        now_largest = next_largest;
        next_largest = largest;
        if (threadIdx.x == 0)
            *next_largest = 0;
        __syncthreads();
    }
};

// The state that the threads of a block share.
struct EigenShared {
    double sums[6][EIGEN_GROUPS];
    // The number of groups that have residues.
    unsigned groups;
    // Two Ritz values, and the two Ritz vectors as combinations of the vectors.
    double values[2], combination[2][2];
    bool is_single;
    // The length of the residual, and whether the iteration has converged, and has ended.
    double residual;
    bool is_converged, is_done;
    // The filter: see `set_filter`.
    float centre, tau, scale, first, offset, gain;
    double lower;
    unsigned largest[2];

    // Stores the partial sums of each group of 32 lanes, added as a tree.
    template <unsigned N> __device__ inline void add(const double (&partial)[EIGEN_SLOTS][N])
    {
#pragma unroll
        for (unsigned slot = 0; slot < EIGEN_SLOTS; ++slot)
#pragma unroll
            for (unsigned n = 0; n < N; ++n) {
                const double sum = warp_sum(partial[slot][n]);
                if (lane() == 0)
                    sums[n][(slot * EIGEN_THREADS + threadIdx.x) / 32] = sum;
            }
        __syncthreads();
    }

    // Sum n over the groups in their order.
    __device__ inline double sum_of_groups(unsigned n) const
    {
        double sum = 0.0;
        for (unsigned group = 0; group < groups; ++group)
            sum += sums[n][group];
        return sum;
    }

    // The Rayleigh-Ritz step in the plane of the vectors x, by the sums of x.x and x.Ax. The first
    // warp computes, the others wait.
    __device__ inline void set_ritz()
    {
        if (threadIdx.x < 32) {
            const double sum_of_lane = sum_of_groups(min(threadIdx.x, 5u));
            const auto sum = [&](unsigned n) { return __shfl_sync(~0u, sum_of_lane, n); };
            const double g11 = sum(0), g12 = sum(1), g22 = sum(2);
            const double h11 = sum(3), h12 = sum(4), h22 = sum(5);
            if (threadIdx.x == 0)
                set_ritz(g11, g12, g22, h11, h12, h22);
        }
        __syncthreads();
    }

    // One thread calls it, in several places. Inlining its divisions and roots, and those of
    // `set_filter`, makes the compilation take half as long again.
    __device__ __noinline__ void set_ritz(double g11, double g12, double g22, double h11,
                                          double h12, double h22)
    {
        // Gram and Schmidt: u1 = a x1, u2 = b x1 + c x2.
        const double a = 1.0 / sqrt(g11), along = g12 * a, rest = g22 - along * along;
        is_single = !(rest > DEPENDENT * g22);
        if (is_single) {
            values[0] = h11 / g11;
            values[1] = 0.0;
            combination[0][0] = a;
            combination[0][1] = combination[1][0] = combination[1][1] = 0.0;
            return;
        }
        const double c = 1.0 / sqrt(rest), b = -(along * a) * c;
        const double s11 = a * a * h11, s12 = a * (b * h11 + c * h12);
        const double s22 = b * b * h11 + 2.0 * b * c * h12 + c * c * h22;
        const double mean = 0.5 * (s11 + s22), half = 0.5 * (s11 - s22);
        const double root = sqrt(half * half + s12 * s12);
        values[0] = mean + root;
        values[1] = mean - root;
        double y1 = half < 0.0 ? s12 : half + root, y2 = half < 0.0 ? root - half : s12;
        const double length = sqrt(y1 * y1 + y2 * y2);
        y1 = length > 0.0 ? y1 / length : 1.0;
        y2 = length > 0.0 ? y2 / length : 0.0;
        combination[0][0] = y1 * a + y2 * b;
        combination[0][1] = y2 * c;
        combination[1][0] = y1 * b - y2 * a;
        combination[1][1] = y1 * c;
    }

    // Whether the two largest eigenvalues differ.
    __device__ inline bool is_simple() const
    {
        return is_single || values[0] - values[1] > GAP * values[0];
    }

    // Decides whether the iteration ends, by the sums of r.r and r.Ar of the residual r = Ax -
    // value x, and sets the next round's filter. The first warp computes, the others wait.
    __device__ inline void set_filter(bool is_first, bool is_last)
    {
        if (threadIdx.x < 32) {
            const double sum_of_lane = sum_of_groups(min(threadIdx.x, 1u));
            const double slope = __shfl_sync(~0u, sum_of_lane, 1);
            if (threadIdx.x == 0)
                set_filter(sum_of_lane, slope, is_first, is_last);
        }
        __syncthreads();
    }

    // Not inlined, for the same reason as `set_ritz`.
    __device__ __noinline__ void set_filter(double squares, double slope, bool is_first,
                                            bool is_last)
    {
        const double largest = values[0];
        residual = sqrt(squares);
        const double quotient = squares > 0.0 ? slope / squares : 0.0;
        if (quotient < 0.0 && !is_first)
            lower = -1.0;
        const double share = largest > 0.0 ? quotient / largest : 0.0;
        const double least = is_first ? UPPER_FIRST : UPPER_MIN;
        const double raised = share > least ? share : least;
        const double upper = raised < UPPER_MAX ? raised : UPPER_MAX;
        const double by_gap = VECTOR_ERROR * (1.0 - upper);
        const double target = (by_gap < RESIDUAL ? by_gap : RESIDUAL) * largest;
        is_converged = residual <= target;
        is_done = is_converged || is_last || !(residual < 1.0 / 0.0);
        const double middle = 0.5 * (lower + upper) * largest;
        const double width = 0.5 * (upper - lower) * largest;
        centre = float(middle);
        tau = float((largest - middle) / width);
        scale = float(2.0 / width);
        offset = float(values[1] - middle);
        first = 0.5f * scale / tau;
        const double needed = GAIN_SPARE * residual / target;
        gain = float(needed < GAIN_MAX ? needed : GAIN_MAX);
    }
};

// The iteration for one chain.
template <bool PACKED> struct Iteration {
    const ChainGraph& graph;
    Vectors<PACKED> vectors;
    EigenShared& shared;
    // The two vectors x, A x, and the residual of the Ritz vectors.
    double2 *x, *image;
    float2* rest;

    // Adds the filter's vectors to x, after multiplying the second vector of x by `scale`; then
    // updates A x and the Ritz values.
    __device__ inline void add(double scale)
    {
        double partial[EIGEN_SLOTS][6] = {};
        each_row(graph.count, [&](unsigned m, unsigned slot) {
            const Two<double> added = graph.sum_of_contacts<double>(vectors, m);
            const float2 change = vectors.now[m];
            const double2 before = x[m], image_before = image[m];
            const double one = before.x + change.x, two = before.y * scale + change.y;
            const double image_one = image_before.x + added.one;
            const double image_two = image_before.y * scale + added.two;
            x[m] = {one, two};
            image[m] = {image_one, image_two};
            double(&sums)[6] = partial[slot];
            sums[0] += one * one;
            sums[1] += one * two;
            sums[2] += two * two;
            sums[3] += one * image_one;
            sums[4] += one * image_two;
            sums[5] += two * image_two;
        });
        shared.add(partial);
        shared.set_ritz();
    }

    // Replaces x by the Ritz vectors, whose residuals become the current vectors; then computes A r
    // of the residuals r, and decides whether the iteration ends.
    __device__ inline void rotate(bool is_first, bool is_last)
    {
        const double(&by)[2][2] = shared.combination;
        const auto turned = [&](double2 v) {
            return double2{by[0][0] * v.x + by[0][1] * v.y, by[1][0] * v.x + by[1][1] * v.y};
        };
        const double value = shared.values[0], second = shared.values[1];
        each_row(graph.count, [&](unsigned m, unsigned) {
            const double2 rotated = turned(x[m]), rotated_image = turned(image[m]);
            x[m] = rotated;
            image[m] = rotated_image;
            const float2 residual{float(rotated_image.x - value * rotated.x),
                                  float(rotated_image.y - second * rotated.y)};
            rest[m] = residual;
            vectors.set_next(m, residual);
        });
        vectors.turn();
        double partial[EIGEN_SLOTS][2] = {};
        each_row(graph.count, [&](unsigned m, unsigned slot) {
            const Two<float> image_of_rest = graph.sum_of_contacts<float>(vectors, m);
            const double residual = vectors.now[m].x;
            partial[slot][0] += residual * residual;
            partial[slot][1] += residual * image_of_rest.one;
            vectors.next[m] = {image_of_rest.one, image_of_rest.two};
        });
        shared.add(partial);
        shared.set_filter(is_first, is_last);
    }

    // Applies a Chebyshev polynomial p of A to x. `vectors` then has p(A) x - s x, with s = 1 for
    // the first vector; s for the second is returned. The number of products with A is added to
    // `taken`.
    __device__ inline double filter(unsigned degree_max, unsigned& taken)
    {
        const float centre = shared.centre, scale = shared.scale, offset = shared.offset;
        const float first = shared.first, gain = shared.gain;
        const float twice = 2.0f * shared.tau;
        float sigma = 1.0f / shared.tau, growth = shared.tau;
        float share_before = 1.0f, share = offset * first, a, b;
        const auto raise = [&] {
            const float ratio = twice - sigma, next = 1.0f / ratio;
            a = scale * next;
            b = sigma * next;
            sigma = next;
            growth *= ratio;
        };
        const auto step = [&](Two<float> image, float2 vector, float2 residual, float2 before) {
            return float2{a * ((image.one - centre * vector.x) + residual.x) - b * before.x,
                          a * ((image.two - centre * vector.y) + share * residual.y) - b * before.y};
        };
        const auto raise_share = [&] {
            const float next = a * offset * share - b * share_before;
            share_before = share;
            share = next;
        };
        raise();
        each_row(graph.count, [&](unsigned m, unsigned) {
            const float2 residual = vectors.now[m], image = vectors.next[m];
            const float2 vector{first * residual.x, first * residual.y};
            vectors.now[m] = vector;
            vectors.set_next(m, step({first * image.x, first * image.y}, vector, residual, {0, 0}));
        });
        raise_share();
        vectors.turn();
        for (unsigned degree = 2; degree < degree_max && growth < gain; ++degree) {
            raise();
            each_row(graph.count, [&](unsigned m, unsigned) {
                const Two<float> image = graph.sum_of_contacts<float>(vectors, m);
                vectors.set_next(m, step(image, vectors.now[m], rest[m], vectors.next[m]));
            });
            raise_share();
            vectors.turn();
            ++taken;
        }
        return share;
    }

    __device__ inline void run(unsigned steps)
    {
        add(1.0);
        unsigned taken = 2, degree_max = DEGREE_FIRST;
        for (rotate(true, taken >= steps); !shared.is_done; rotate(false, taken >= steps)) {
            const double share = filter(degree_max, taken);
            add(share);
            taken += 2;
            degree_max = min(2 * degree_max, DEGREE_MAX);
        }
    }
};

// The outputs for a chain.
struct Centrality {
    const unsigned *lists, *degrees;
    float *vectors, *residual;
    unsigned steps;

    template <bool PACKED>
    __device__ inline void compute(const ChainGraph& graph, bool is_crowded, float2* now,
                                   float2* next, double2* scratch, EigenShared& shared) const
    {
        const unsigned count = graph.count;
        bool is_any = false;
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            const unsigned residue = graph.members[m];
            graph.set<PACKED>(m, lists + CONTACTS_MAX * residue, degrees[residue]);
            is_any |= present(graph.atoms[residue]);
        }
        is_any = __syncthreads_or(is_any);
        if (threadIdx.x == 0) {
            shared.groups = min((count + 31) / 32, EIGEN_GROUPS);
            shared.lower = LOWER;
            shared.largest[0] = shared.largest[1] = 0;
        }
        if (!is_any) {
            for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS)
                vectors[graph.members[m]] = null_real();
            if (threadIdx.x == 0)
                *residual = null_real();
            return;
        }
        __syncthreads();

        Iteration<PACKED> iteration{graph,
                                    {now, next, shared.largest, shared.largest + 1, is_crowded},
                                    shared,
                                    scratch,
                                    scratch + count,
                                    (float2*)(scratch + 2 * count)};
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            const unsigned residue = graph.members[m];
            const float weight =
                present(graph.atoms[residue]) ? 1.0f + float(degrees[residue]) : 0.0f;
            iteration.vectors.set_next(m, {weight * (4.0f + eigen_random(2 * m)),
                                           weight * (2.0f * eigen_random(2 * m + 1) - 1.0f)});
            iteration.x[m] = iteration.image[m] = {0.0, 0.0};
        }
        iteration.vectors.turn();
        iteration.run(steps);

        const bool is_known = shared.is_converged && shared.is_simple();
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            const unsigned residue = graph.members[m];
            const bool is_there = is_known && present(graph.atoms[residue]);
            vectors[residue] = is_there ? float(fabs(iteration.x[m].x)) : null_real();
        }
        if (threadIdx.x == 0)
            *residual = shared.residual < 1.0 / 0.0 ? float(shared.residual) : null_real();
    }
};

// Computes for each chain the eigenvector of the largest eigenvalue of its contact matrix A, and
// the length of A v - (v . A v) v for what was found. Vectors are null if the two largest
// eigenvalues are the same within 1e-6, or `steps` products with A do not suffice. One block per
// chain. `scratch` is [residues, EIGEN_SCRATCH], and `neighbours` [residues, CONTACT_WORDS].
KERNEL(EIGEN_THREADS, 1)
eigenvector(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
            const unsigned* members, const Atom* atoms, CELL_PARAMS, const unsigned* lists,
            const unsigned* degrees, unsigned* places, unsigned* neighbours, double* scratch,
            float* vectors, float* residuals, unsigned radius, unsigned steps)
{
    wait_for_dependencies();
    __shared__ EigenShared shared;
    __shared__ float2 values[2][EIGEN_SHARED + 1];
    each_block(header, CHAINS, [&](unsigned chain_index) {
        const ChainSpan chain = chains[chain_index];
        const unsigned count = chain.count;
#ifndef FUSED
        // Barriers do not wait for threads that have left.
        if (threadIdx.x >= max(32u, (count + 31) / 32 * 32))
            return;
#endif
        const ChainGraph graph{atoms,
                               members + chain.member_start,
                               places,
                               neighbours + CONTACT_WORDS * chain.member_start,
                               count,
                               radius,
                               CELLS_OF_PARAMS,
                               structures[chain.structure].residue_grid};
        bool is_crowded = false;
        for (unsigned m = threadIdx.x; m < count; m += EIGEN_THREADS) {
            places[graph.members[m]] = m;
            is_crowded |= degrees[graph.members[m]] > CONTACTS_MAX;
        }
        if (threadIdx.x < 2)
            values[threadIdx.x][min(count, EIGEN_SHARED)] = {0.0f, 0.0f};
        is_crowded = __syncthreads_or(is_crowded);

        const Centrality centrality{lists, degrees, vectors, residuals + chain_index, steps};
        double2* own_scratch = (double2*)(scratch + EIGEN_SCRATCH * chain.member_start);
        float2* rest = (float2*)(own_scratch + 2 * count);
        if (count <= EIGEN_SHARED && !is_crowded)
            centrality.compute<true>(graph, false, values[0], values[1], own_scratch, shared);
        else
            centrality.compute<false>(graph, is_crowded, rest + count, rest + 2 * count,
                                      own_scratch, shared);
    });
}
