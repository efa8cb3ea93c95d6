// The algorithm of Lee and Richards, with the neighbours that shrake_rupley.cuh finds.
//
// Planes z = R (2 s + 1 - N) / N of slices s < N cut the sphere of an atom in circles. Each neighbour
// buries an arc of a circle, or all of it, and the open part of the circle stands for that of the
// zone around it, whose area is 4 pi R^2 / N.
//
// Angles are integers, 2^32 to a turn, and every operation before them is rounded in the same way on
// all machines. What is open is a union of integer intervals, so it does not depend on the order of
// the neighbours.
#pragma once
#include "shrake_rupley.cuh"

namespace lee_richards {
using namespace shrake_rupley;

// The parts of a circle that areas count in: an area is a sum of open parts, as it is one of open
// points in shrake_rupley.cuh.
constexpr unsigned PARTS = 4096;
// The number of open arcs of a circle that a lane has room for. If there are more, the arcs of half a
// circle are found at a time, or of a quarter, and so on.
constexpr unsigned ARCS = 8;
constexpr float TURN = 4294967296.0f, TURNS_PER_RADIAN = 0.15915494f;

// arctan(t) / t for |t| <= 1 is a polynomial in t^2, and arccos(t) / sqrt(1 - t) for 0 <= t <= 1 one
// in t, both with errors of up to 2e-8: Abramowitz and Stegun 1964, 4.4.49 and 4.4.46.
__device__ inline float arctan_over(float t2)
{
    float sum = 0.0028662257f;
    sum = __fmaf_rn(sum, t2, -0.0161657367f);
    sum = __fmaf_rn(sum, t2, 0.0429096138f);
    sum = __fmaf_rn(sum, t2, -0.0752896400f);
    sum = __fmaf_rn(sum, t2, 0.1065626393f);
    sum = __fmaf_rn(sum, t2, -0.1420889944f);
    sum = __fmaf_rn(sum, t2, 0.1999355085f);
    sum = __fmaf_rn(sum, t2, -0.3333314528f);
    return __fmaf_rn(sum, t2, 1.0f);
}

__device__ inline float arccos_over(float t)
{
    float sum = -0.0012624911f;
    sum = __fmaf_rn(sum, t, 0.0066700901f);
    sum = __fmaf_rn(sum, t, -0.0170881256f);
    sum = __fmaf_rn(sum, t, 0.0308918810f);
    sum = __fmaf_rn(sum, t, -0.0501743046f);
    sum = __fmaf_rn(sum, t, 0.0889789874f);
    sum = __fmaf_rn(sum, t, -0.2145988016f);
    return __fmaf_rn(sum, t, 1.5707963050f);
}

// The direction of (x, y); any if both are 0.
__device__ inline unsigned direction(float x, float y)
{
    const float across = fabsf(x), up = fabsf(y);
    const float large = fmaxf(across, up), small = fminf(across, up);
    const float t = large > 0.0f ? small / large : 0.0f;
    unsigned angle = unsigned(t * arctan_over(t * t) * TURNS_PER_RADIAN * TURN);
    angle = up > across ? (1u << 30) - angle : angle;
    angle = x < 0.0f ? (1u << 31) - angle : angle;
    return y < 0.0f ? 0u - angle : angle;
}

// Half the width of an arc, from the cosine of that half, which is between -1 and 1; less than half a
// turn.
__device__ inline unsigned half_width(float cosine)
{
    const float t = fabsf(cosine);
    const float turns = sqrtf(1.0f - t) * arccos_over(t) * TURNS_PER_RADIAN;
    return unsigned(fminf(cosine < 0.0f ? 0.5f - turns : turns, 0.49999997f) * TURN);
}

// Makes bites of the half spaces of an atom, which are listed after `before`. A bite is what a
// neighbour buries of the circles of an atom, as 1 / d, z, t and a direction: in the slice at height
// h, with the circle's radius r (both of R = 1), the arc around the direction up to the angle whose
// cosine is -(t + z h) / (r d), where d is the neighbour's distance from the axis.
__device__ inline void make_bites(const Context& c, Listed before, Listed listed)
{
    const auto make = [&](unsigned place) {
        const float4 h = c.work.half_spaces[place];
        const float inverse = 1.0f / sqrtf(__fmaf_rn(h.x, h.x, h.y * h.y));
        c.work.half_spaces[place]
            = {inverse, h.z, h.w, __uint_as_float(direction(h.x, h.y))};
    };
    for (unsigned place = before.near + lane(); place < listed.near; place += 32)
        make(place);
    for (unsigned place = before.far + lane(); place < listed.far; place += 32)
        make(HALF_SPACES - 1 - place);
    __syncwarp();
}

// The open arcs of a lane's circle that are in a window of angles.
struct Circle {
    // The height of the slice, and 1 / the circle's radius.
    float height, inverse;
    unsigned start[ARCS], length[ARCS], count;
    // Whether an arc found no room.
    bool overflows;

    // Makes the whole window open, or nothing if there is no circle.
    __device__ inline void open(bool exists, unsigned window, unsigned window_length)
    {
        start[0] = window;
        length[0] = window_length;
        count = exists ? 1 : 0;
        overflows = false;
    }

    // Closes an arc, which ends before a whole turn.
    __device__ inline void close(unsigned from, unsigned turn)
    {
        const unsigned old = count;
        unsigned kept = 0;
        for (unsigned k = 0; k < old; ++k) {
            const unsigned own = start[k], all = length[k];
            // Where the arc begins and ends, counted from the open arc's start. If it goes over that
            // start, it closes the arc's beginning.
            const unsigned begin = from - own, end = begin + turn;
            const unsigned first = end < begin ? end : 0;
            const unsigned last = min(begin, all);
            const bool has_more = end > begin && end < all;
            // An arc behind the kept ones and before the unseen ones, or behind all.
            const auto keep = [&](unsigned arc_start, unsigned arc_length) {
                if (kept <= k) {
                    start[kept] = arc_start;
                    length[kept++] = arc_length;
                } else if (count < ARCS) {
                    start[count] = arc_start;
                    length[count++] = arc_length;
                } else {
                    overflows = true;
                }
            };
            if (first < last)
                keep(own + first, last - first);
            if (has_more)
                keep(own + end, all - end);
        }
        // Moves those behind the old ones into the gap.
        for (unsigned k = old; k < count; ++k, ++kept) {
            start[kept] = start[k];
            length[kept] = length[k];
        }
        count = kept;
    }

    // Closes what bites begin ... < end of the workspace bury.
    __device__ inline void bury(const Context& c, unsigned begin, unsigned end)
    {
        for (unsigned place = begin; place < end && count > 0; ++place) {
            const float4 bite = c.work.half_spaces[place];
            const float cosine = -__fmaf_rn(bite.y, height, bite.z) * (bite.x * inverse);
            // On the axis it is infinite or, if it touches the circle, no number.
            if (!(cosine > -1.0f)) {
                count = 0;
            } else if (cosine < 1.0f) {
                const unsigned half = half_width(cosine);
                if (half > 0)
                    close(__float_as_uint(bite.w) - half, 2 * half);
            }
        }
    }

    __device__ inline unsigned long long open_turns() const
    {
        unsigned long long sum = 0;
        for (unsigned k = 0; k < count; ++k)
            sum += length[k];
        return sum;
    }
};

// Which circle a lane has: that of slice `slice`, `slice` + 32, ... of the atom `atom` of those that
// are processed together.
struct Place { unsigned atom, slice; };

// What is open of the circles of a lane, without the other atoms and in the model, in units of
// 2^-32 turns.
struct Turns { unsigned long long alone, model; };

// The open parts of the circles of a lane. search(others, circle) closes what the other atoms bury or,
// unless `others`, what the rest does, and returns false to stop; then this returns false.
template <bool SPLIT, typename Search>
__device__ inline bool open_turns(unsigned slices, Place place, Turns& turns, Search search)
{
    turns = {};
    for (unsigned first = 0; first < slices; first += 32) {
        const unsigned slice = first + place.slice;
        Circle circle;
        circle.height = float(int(2 * slice + 1) - int(slices)) / float(slices);
        circle.inverse = 1.0f / sqrtf(1.0f - circle.height * circle.height);
        unsigned window = 0, halvings = 0;
        for (;;) {
            // The last angle of the circle is in no window, so that a whole circle is a window too.
            const unsigned size = halvings > 0 ? 1u << (32 - halvings) : 0u;
            const unsigned next = window + size;
            circle.open(slice < slices, window, next == 0 ? ~0u - window : size);
            Turns open{};
            for (unsigned others = 0; others < (SPLIT ? 2 : 1); ++others) {
                if (!search(bool(others), circle))
                    return false;
                open.model = circle.open_turns();
                if (others == 0)
                    open.alone = open.model;
            }
            if (__any_sync(~0u, circle.overflows)) {
                ++halvings;
                continue;
            }
            turns.alone += open.alone;
            turns.model += open.model;
            window = next;
            if (window == 0)
                break;
        }
    }
    return true;
}

// The sums over the circles of each atom that is processed together, in PARTS; `width` lanes have the
// circles of one.
__device__ inline Open open_parts(Turns turns, unsigned width)
{
    for (unsigned stride = width / 2; stride > 0; stride /= 2) {
        turns.alone += __shfl_xor_sync(~0u, turns.alone, stride);
        turns.model += __shfl_xor_sync(~0u, turns.model, stride);
    }
    constexpr unsigned long long PART = (1ull << 32) / PARTS;
    return {unsigned((turns.alone + PART / 2) / PART), unsigned((turns.model + PART / 2) / PART)};
}

// Calls take(atom, center, start, length, candidates) for groups of a residue's atoms as those of
// shrake_rupley::residue_areas; it returns the number of atoms that it processed, from `start` on. Each
// lane gets one of the group's `length` atoms. The group's neighbours are among the candidates in the
// workspace, if these are not more than CANDIDATES.
template <Others OTHERS, typename Take>
__device__ inline void each_group(const Context& c, const ResidueSpan& residue, const Atom* atoms,
                                  Take take)
{
    const unsigned end = residue.atom_start + residue.atom_count;
    unsigned most = 32;
    for (unsigned start = residue.atom_start; start < end;) {
        const unsigned length = min(most, end - start);
        const Atom atom = atoms[start + min(lane(), length - 1)];
        const Box box(atom.x, atom.y, atom.z);
        unsigned candidates = CANDIDATES + 1;
        if (box.edge() <= GROUP_EDGE)
            candidates = candidates_of<OTHERS>(c, box, [](unsigned) { return CANDIDATES + 1; });
        if (candidates > CANDIDATES && length > 1) {
            most = length / 2;
            continue;
        }
        fill_up(c, min(candidates, CANDIDATES));
        const float radius = float(int(tag_radius(atom.tag)) + c.probe);
        const Center center{float(atom.x - box.low.x), float(atom.y - box.low.y),
                            float(atom.z - box.low.z),
                            radius * radius, 1.0f / (2.0f * radius)};
        start += take(atom, center, start, length, candidates);
    }
}

// The center of lane `k`.
__device__ inline Center center_of(const Center& center, unsigned k)
{
    return {__shfl_sync(~0u, center.x, k), __shfl_sync(~0u, center.y, k),
            __shfl_sync(~0u, center.z, k), __shfl_sync(~0u, center.radius2, k),
            __shfl_sync(~0u, center.inverse, k)};
}

// The position of the atom of lane `k`.
__device__ inline Position position_of(const Atom& atom, unsigned k)
{
    return {__shfl_sync(~0u, atom.x, k), __shfl_sync(~0u, atom.y, k), __shfl_sync(~0u, atom.z, k)};
}

// The areas of one residue, in units of 1e-6 A^2 per part of a circle; each lane of a kind of area
// gets that area. All threads of the warp call. DELTA is the area that the other atoms bury.
// `c.count` is the number of slices.
template <Others OTHERS, typename Take = CountOnly>
__device__ inline unsigned long long areas_of(const Context& c, const ResidueSpan& residue,
                                              const Atom* atoms, const Take& take = {})
{
    constexpr bool SPLIT = SPLITS<OTHERS>;
    const unsigned needed = lane() == SIDE ? TAG_SIDE : lane() == POLAR ? TAG_POLAR : 0;
    // Lanes of an atom: a warp has two atoms if each has few slices.
    const unsigned width = c.count <= 16 ? 16 : 32;
    unsigned long long area = 0;
    each_group<OTHERS>(c, residue, atoms, [&](const Atom& atom, const Center& center, unsigned start,
                                              unsigned length, unsigned candidates) {
        unsigned k = 0;
        while (k < length) {
            unsigned together = min(32 / width, length - k), lanes = width;
            Turns turns;
            const Place place{lane() / width, lane() % width};
            const auto from_candidates = [&](bool others, Circle& circle) {
                Listed listed{0, 0}, begin{0, 0}, end{0, 0};
                for (unsigned which = 0; which < together; ++which) {
                    const Listed all
                        = find<SPLIT>(c, center_of(center, k + which), start + k + which, others,
                                      0, candidates, listed);
                    if (!all.fit()) {
                        together = which;
                        break;
                    }
                    make_bites(c, listed, all);
                    if (place.atom == which) {
                        begin = listed;
                        end = all;
                    }
                    listed = all;
                }
                circle.bury(c, begin.near, end.near);
                circle.bury(c, HALF_SPACES - end.far, HALF_SPACES - begin.far);
                return together > 0;
            };
            const bool is_crowded = candidates > CANDIDATES
                || !open_turns<SPLIT>(c.count, place, turns, from_candidates);
            if (is_crowded) {
                together = 1;
                lanes = 32;
                const Center one = center_of(center, k);
                const Center at_origin{0.0f, 0.0f, 0.0f, one.radius2, one.inverse};
                const Position position = position_of(atom, k);
                const Box box(position.x, position.y, position.z);
                const auto from_cells = [&](bool others, Circle& circle) {
                    const auto bury = [&](unsigned count) {
                        fill_up(c, count);
                        for (unsigned first = 0; first < count; first += HALF_SPACES) {
                            const unsigned last = min(first + HALF_SPACES, count);
                            const Listed listed
                                = find<SPLIT>(c, at_origin, start + k, others, first, last);
                            make_bites(c, {0, 0}, listed);
                            circle.bury(c, 0, listed.near);
                            circle.bury(c, HALF_SPACES - listed.far, HALF_SPACES);
                        }
                        return 0u;
                    };
                    bury(candidates_of<OTHERS>(c, box, bury));
                    return true;
                };
                open_turns<SPLIT>(c.count, Place{0, lane()}, turns, from_cells);
            }
            const Open open = open_parts(turns, lanes);
            for (unsigned which = 0; which < together; ++which) {
                const unsigned tag = __shfl_sync(~0u, atom.tag, k + which);
                const unsigned alone = __shfl_sync(~0u, open.alone, which * lanes);
                const unsigned model = __shfl_sync(~0u, open.model, which * lanes);
                const unsigned milli = tag_radius(tag) + c.probe;
                const unsigned count = lane() == DELTA ? alone - model : model;
                if ((tag & needed) == needed)
                    area += (unsigned long long)(milli * milli) * count;
                take.atom(start + k + which, (unsigned long long)(milli * milli) * model);
            }
            k += together;
            // The group's candidates were overwritten.
            if (is_crowded)
                break;
        }
        return k;
    });
    return area;
}

// See shrake_rupley::ShrakeRupley; a kernel has `count` slices.
struct LeeRichards {
    template <Others OTHERS, typename Take = CountOnly>
    __device__ static unsigned long long areas(const Context& c, const ResidueSpan& residue,
                                               const Atom* atoms, const Take& take = {})
    {
        return areas_of<OTHERS>(c, residue, atoms, take);
    }

    __device__ static unsigned parts(unsigned count) { return PARTS * count; }
};

} // namespace lee_richards
