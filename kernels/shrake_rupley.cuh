// The Shrake-Rupley algorithm, which the kernels of solvent-accessible areas and exposed_points.cu
// share.
//
// Neighbour j, at d from atom i, buries a test point u of i if u . d >= t, where
// t = (|d|^2 + R_i^2 - R_j^2) / (2 R_i), with lengths in 0.001 A. d is exact, and every other
// operation is rounded in the same way on all machines, so the counts are the same. Atoms beyond
// R_i + R_j bury nothing, so testing more or fewer of them changes no count. Of several atoms of
// equal radius and position only the first has open points. Areas are sums of n R^2 in integers,
// which do not depend on the order of the terms.
#pragma once
#include "gather.cuh"
#include "limits.cuh"

namespace shrake_rupley {

// One warp per block, so that no warp waits for others to end.
constexpr unsigned THREADS = 32;
// Blocks per multiprocessor: as many as the registers allow without spilling.
[[maybe_unused]] constexpr unsigned RESIDENT = 24;
// The longest edge of the box around a group of atoms. The neighbours of a group are searched
// together.
constexpr int GROUP_EDGE = 10000;
// Searches reach this much beyond the farthest neighbour, which is more than the rounding errors.
constexpr int SLACK = 1;
// A half space is near if its plane is closer to the atom than this, in 0.001 A. An atom has about
// ten near half spaces, which bury nine of ten points, so they are tested first.
constexpr float NEAR = 2440.0f;
// The numbers of candidates (a multiple of the warp size) and of half spaces (a power of two) that
// a warp has room for. In proteins one residue of a thousand has more candidates, and no atom more
// half spaces.
constexpr unsigned CANDIDATES = 224, HALF_SPACES = 128;
static_assert(CANDIDATES % 32 == 0 && (HALF_SPACES & (HALF_SPACES - 1)) == 0, "as stated");
// The number of points that a lane tests together, and that the warp does.
constexpr unsigned SLOTS = 4, TOGETHER = 32 * SLOTS;

// A warp's shared memory.
struct Workspace {
    // Positions relative to the box's low corner, and squared radii, which are negative for the
    // other atoms.
    float4 candidates[CANDIDATES];
    // u . d + t >= 0: d and t; near ones from the front, far ones from the back.
    float4 half_spaces[HALF_SPACES];
    // The indices of the candidates.
    unsigned sources[CANDIDATES];
    // Points of a block that are still open.
    unsigned char living[TOGETHER];
};

// The other atoms: they bury points of a residue in the model, and are left out where its area
// alone is computed. With NONE_OF_CHAIN there are no other atoms, and the model may be a single
// chain.
enum class Others { NONE, NONE_OF_CHAIN, CHAINS, ONE_CHAIN, GLYCANS, REST };

// Whether there may be other atoms.
template <Others OTHERS>
constexpr bool SPLITS = OTHERS != Others::NONE && OTHERS != Others::NONE_OF_CHAIN;

// The chain that stands for all chains of the model.
constexpr unsigned ALL_CHAINS = ~0u;

// A warp's inputs for its residue, among them the test points (x of all points, then y, then z) and
// the probe's radius.
struct Context {
    Workspace& work;
    const Cells& cells;
    const Grid& grid;
    unsigned chain;
    const float* points;
    unsigned count;
    int probe;
    // With Others::GLYCANS the range of glycans' atoms; later atoms are not in the model. With
    // Others::REST the range of the ligand's own atoms, which are no other atoms. With
    // Others::ONE_CHAIN `begin` is that chain; atoms of further chains are not in the model. With
    // Others::NONE_OF_CHAIN `begin` is the only chain in the model, or ALL_CHAINS.
    unsigned begin, end;

    // The largest distance of a neighbour.
    __device__ inline int reach() const { return 2 * (RADIUS_MAX + probe) + SLACK; }
};

// Collects the atoms that may be neighbours of the atoms in a box, and returns their number. If
// there is no room for more, it calls full(count), which returns how many to keep, or more than the
// room to stop.
template <Others OTHERS, typename Full>
__device__ inline unsigned candidates_of(const Context& c, const Box& box, Full full)
{
    const auto load = [&](unsigned sorted) { return uint2{c.cells.tag[sorted], c.cells.source[sorted]}; };
    const auto keep = [&](unsigned place, uint2 atom, float x, float y, float z) {
        const auto [tag, source] = atom;
        const float radius = float(int(tag_radius(tag)) + c.probe);
        const bool is_other
            = OTHERS == Others::CHAINS || OTHERS == Others::ONE_CHAIN ? tag_chain(tag) != c.chain
            : OTHERS == Others::GLYCANS                               ? source >= c.begin
            : OTHERS == Others::REST ? source - c.begin >= c.end - c.begin
                                     : false;
        c.work.candidates[place] = {x, y, z, is_other ? -(radius * radius) : radius * radius};
        c.work.sources[place] = source;
    };
    const auto want = [&](uint2 atom) {
        const unsigned chain = tag_chain(atom.x);
        return OTHERS == Others::GLYCANS ? atom.y < c.end
            : OTHERS == Others::ONE_CHAIN ? chain == c.chain || chain == c.begin
            : OTHERS == Others::NONE_OF_CHAIN ? c.begin == ALL_CHAINS || chain == c.begin
                                              : true;
    };
    return gather(c.cells, c.grid, box, c.reach(), CANDIDATES, (uint2*)c.work.half_spaces, load,
                  want, keep, full);
}

// The atom whose points are tested: its position relative to the box's low corner, R^2, and 1 / (2
// R), where R is its radius.
struct Center { float x, y, z, radius2, inverse; };

// Half spaces in the workspace: near ones from the front, far ones from the back.
struct Listed {
    unsigned near, far;

    __device__ inline bool fit() const { return near + far <= HALF_SPACES; }
};

// Pads the candidates to whole steps with one that is no atom's neighbour.
__device__ inline void fill_up(const Context& c, unsigned candidates)
{
    const unsigned place = candidates / 32 * 32 + lane();
    if (candidates % 32 > 0 && place >= candidates)
        c.work.candidates[place] = {1e15f, 0.0f, 0.0f, 1.0f};
    __syncwarp();
}

// Computes the half spaces of candidates first ... < last, which are whole steps, for an atom, and
// lists them after those that are listed. If SPLIT, only those of the other atoms if `others`, or
// only those of the rest. If a step's half spaces exceed the room, none is written from this step
// on.
template <bool SPLIT>
__device__ inline Listed find(const Context& c, const Center& center, unsigned atom_index,
                              bool others, unsigned first, unsigned last, Listed listed = {0, 0})
{
    const float farthest = -float(c.reach());
    unsigned near = listed.near, far = HALF_SPACES - 1 - listed.far;
    __syncwarp();
    for (; first < last; first += 32) {
        const float4 candidate = c.work.candidates[first + lane()];
        const unsigned source = c.work.sources[first + lane()];
        const float x = candidate.x - center.x, y = candidate.y - center.y,
                    z = candidate.z - center.z;
        float t = (SPLIT ? fabsf(candidate.w) : candidate.w) - center.radius2;
        t = __fmaf_rn(-x, x, t);
        t = __fmaf_rn(-y, y, t);
        t = __fmaf_rn(-z, z, t) * center.inverse;
        // Leaves out the atom itself, and a later one of the same radius at the same position.
        const bool apart = (__float_as_uint(x) | __float_as_uint(y) | __float_as_uint(z)
                            | __float_as_uint(t)) != 0;
        bool wanted = (t > farthest) & (apart | (source < atom_index));
        if (SPLIT)
            wanted &= (candidate.w < 0.0f) == others;
        const bool is_near = t > -NEAR;
        const unsigned nears = __ballot_sync(~0u, wanted & is_near);
        const unsigned fars = __ballot_sync(~0u, wanted & !is_near);
        const unsigned rank = before(is_near ? nears : fars);
        const unsigned place = is_near ? near + rank : far - rank;
        near += __popc(nears);
        far -= __popc(fars);
        // Once they exceed the room, `near` has passed `far` for good.
        if (wanted & (int(far - near) >= -1))
            c.work.half_spaces[place] = {x, y, z, t};
    }
    __syncwarp();
    return {near, HALF_SPACES - 1 - far};
}

// The bits of u . d + t, which is negative outside of the half space. It is never a negative zero:
// t is none, and terms that cancel give a positive zero.
__device__ inline unsigned depth(float4 h, float x, float y, float z)
{
    return __float_as_uint(__fmaf_rn(x, h.x, __fmaf_rn(y, h.y, __fmaf_rn(z, h.z, h.w))));
}

// A lane's points of a block.
struct Points {
    float x[SLOTS], y[SLOTS], z[SLOTS];

    __device__ inline void load(const Context& c, unsigned block)
    {
#pragma unroll
        for (unsigned s = 0; s < SLOTS; ++s) {
            const float* point = c.points + min(block + 32 * s + lane(), c.count - 1);
            x[s] = point[0];
            y[s] = point[c.count];
            z[s] = point[2 * c.count];
        }
    }
};

// Tests a block of points against the near half spaces, lists the open ones, and returns their
// number.
__device__ inline unsigned near_pass(const Context& c, const Points& points, unsigned block,
                                     unsigned near)
{
    unsigned open[SLOTS];
#pragma unroll
    for (unsigned s = 0; s < SLOTS; ++s)
        open[s] = block + 32 * s + lane() < c.count ? ~0u : 0u;
#pragma unroll 2
    for (unsigned n = 0; n < near; ++n) {
        const float4 h = c.work.half_spaces[n];
#pragma unroll
        for (unsigned s = 0; s < SLOTS; ++s)
            open[s] &= depth(h, points.x[s], points.y[s], points.z[s]);
    }
    if (!__any_sync(~0u, (open[0] | open[1] | open[2] | open[3]) >> 31))
        return 0;
    unsigned living = 0;
#pragma unroll
    for (unsigned s = 0; s < SLOTS; ++s) {
        const bool is_open = open[s] >> 31;
        const unsigned found = __ballot_sync(~0u, is_open);
        if (is_open)
            c.work.living[living + before(found)] = 32 * s + lane();
        living += __popc(found);
    }
    __syncwarp();
    return living;
}

// Tests the listed points of a block against half spaces begin ... < end, and returns the number of
// open ones. If there are few points, several lanes share a point. If KEEP, it lists the open
// points.
template <bool KEEP>
__device__ inline unsigned living_pass(const Context& c, unsigned block, unsigned living,
                                       unsigned begin, unsigned end)
{
    unsigned kept = 0;
    for (unsigned first = 0; first < living; first += 32) {
        const unsigned count = min(32u, living - first);
        // The binary logarithm of the number of lanes from one half space to the next.
        const unsigned shift = 32 - __clz(count - 1), stride = 32u >> shift;
        const unsigned place = lane() & ((1u << shift) - 1);
        const unsigned point = c.work.living[first + min(place, count - 1)];
        const float* point_axes = c.points + block + point;
        const float x = point_axes[0], y = point_axes[c.count], z = point_axes[2 * c.count];
        unsigned open = ~0u;
#pragma unroll 4
        for (unsigned n = begin + (lane() >> shift); n < end; n += stride)
            open &= depth(c.work.half_spaces[n], x, y, z);
        for (unsigned width = 1u << shift; width < 32; width *= 2)
            open &= __shfl_xor_sync(~0u, open, width);
        const bool is_open = open >> 31 && lane() < count;
        const unsigned found = __ballot_sync(~0u, is_open);
        if (KEEP) {
            __syncwarp();
            if (is_open)
                c.work.living[kept + before(found)] = point;
        }
        kept += __popc(found);
    }
    __syncwarp();
    return kept;
}

// Numbers of an atom's points that are open without the other atoms, and in the model.
struct Open { unsigned alone, model; };

// Gets the open points of an atom, which are listed in c.work.living and counted from point
// `block`, and then the atom's area in units of 1e-6 A^2 per point; ignores both. An implementation
// may get a block of an atom twice; then the second time counts.
struct CountOnly {
    static constexpr bool LISTS = false;

    __device__ inline void operator()(const Context&, unsigned, unsigned, unsigned) const {}
    __device__ inline void atom(unsigned, unsigned long long) const {}
};

// Counts the open points of an atom whose candidates are all in the workspace. `points` are the
// points of the first block, if there is only one. Returns false if the atom has too many
// neighbours.
template <bool SPLIT, typename Take>
__device__ inline bool open_points(const Context& c, Points& points, const Center& center,
                                   unsigned atom_index, unsigned candidates, Open& open,
                                   const Take& take)
{
    open = {};
    for (unsigned block = 0; block < c.count; block += TOGETHER) {
        if (c.count > TOGETHER)
            points.load(c, block);
        const Listed chain = find<SPLIT>(c, center, atom_index, false, 0, candidates);
        if (!chain.fit())
            return false;
        unsigned living = near_pass(c, points, block, chain.near);
        living = living_pass<SPLIT || Take::LISTS>(c, block, living, HALF_SPACES - chain.far,
                                                   HALF_SPACES);
        open.alone += living;
        if (SPLIT && living > 0) {
            const Listed other = find<SPLIT>(c, center, atom_index, true, 0, candidates);
            if (!other.fit())
                return false;
            living = living_pass<true>(c, block, living, 0, other.near);
            living = living_pass<Take::LISTS>(c, block, living, HALF_SPACES - other.far,
                                              HALF_SPACES);
        }
        open.model += living;
        take(c, atom_index, block, living);
    }
    return true;
}

// Counts the open points of an atom with any number of neighbours, in several passes over the
// workspace.
template <Others OTHERS, typename Take>
__device__ inline Open open_in_crowd(const Context& c, const Points& points,
                                     const Center& center, unsigned atom_index, Position position,
                                     const Take& take)
{
    constexpr bool SPLIT = SPLITS<OTHERS>;
    const Box box(position.x, position.y, position.z);
    Open open{};
    for (unsigned block = 0; block < c.count; block += TOGETHER) {
        unsigned living = near_pass(c, points, block, 0);
        for (unsigned others = 0; others < (SPLIT ? 2 : 1); ++others) {
            const auto empty = [&](unsigned count) {
                fill_up(c, count);
                for (unsigned first = 0; first < count; first += HALF_SPACES) {
                    const unsigned last = min(first + HALF_SPACES, count);
                    const Listed listed = find<SPLIT>(c, center, atom_index, others, first, last);
                    living = living_pass<true>(c, block, living, 0, listed.near);
                    living = living_pass<true>(c, block, living, HALF_SPACES - listed.far,
                                               HALF_SPACES);
                }
                return 0u;
            };
            empty(candidates_of<OTHERS>(c, box, empty));
            if (others == 0)
                open.alone += living;
        }
        open.model += living;
        take(c, atom_index, block, living);
    }
    return open;
}

// The lanes that hold the areas of a residue.
enum Kind { ALL, SIDE, POLAR, DELTA };

// The areas of one residue, in units of 1e-6 A^2 per point; each lane of a kind of area gets that
// area. All threads of the warp call. DELTA is the area that the other atoms bury. `take` gets the
// open points.
template <Others OTHERS, typename Take = CountOnly>
__device__ inline unsigned long long residue_areas(const Context& c, const ResidueSpan& residue,
                                                   const Atom* atoms, const Take& take = {})
{
    // The bits that an atom's tag needs for this lane's kind of area.
    const unsigned needed = lane() == SIDE ? TAG_SIDE : lane() == POLAR ? TAG_POLAR : 0;
    unsigned long long area = 0;
    Points points;
    points.load(c, 0);
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
        unsigned k = 0;
        for (; k < length; ++k) {
            const Center one{__shfl_sync(~0u, center.x, k), __shfl_sync(~0u, center.y, k),
                             __shfl_sync(~0u, center.z, k), __shfl_sync(~0u, center.radius2, k),
                             __shfl_sync(~0u, center.inverse, k)};
            const unsigned tag = __shfl_sync(~0u, atom.tag, k);
            Open open;
            const bool is_crowded = candidates > CANDIDATES
                || !open_points<SPLITS<OTHERS>>(c, points, one, start + k, candidates, open, take);
            if (is_crowded) {
                const Position atom_position{__shfl_sync(~0u, atom.x, k),
                                             __shfl_sync(~0u, atom.y, k),
                                             __shfl_sync(~0u, atom.z, k)};
                const Center at_origin{0.0f, 0.0f, 0.0f, one.radius2, one.inverse};
                open = open_in_crowd<OTHERS>(c, points, at_origin, start + k, atom_position, take);
            }
            const unsigned milli = tag_radius(tag) + c.probe;
            const unsigned count = lane() == DELTA ? open.alone - open.model : open.model;
            if ((tag & needed) == needed)
                area += (unsigned long long)(milli * milli) * count;
            take.atom(start + k, (unsigned long long)(milli * milli) * open.model);
            if (is_crowded) {
                // The group's candidates were overwritten.
                ++k;
                break;
            }
        }
        start += k;
    }
    return area;
}

// The area in A^2 of one of `points` test points, for a squared radius of one unit of 0.001 A.
__device__ inline double angstrom2_per_point(unsigned points)
{
    return 4e-6 * 3.141592653589793 / double(points);
}

// An area in A^2; null for a residue without atoms.
__device__ inline float angstrom2(unsigned long long area, const ResidueSpan& residue,
                                  unsigned points)
{
    const double scale = angstrom2_per_point(points);
    return residue.atom_count > 0 ? float(double(area) * scale) : null_real();
}

// The algorithm, as kernels of areas take one: its areas of a residue, and the number of parts of a
// sphere that these count, where a kernel has `count` points.
struct ShrakeRupley {
    template <Others OTHERS, typename Take = CountOnly>
    __device__ static unsigned long long areas(const Context& c, const ResidueSpan& residue,
                                               const Atom* atoms, const Take& take = {})
    {
        return residue_areas<OTHERS>(c, residue, atoms, take);
    }

    __device__ static unsigned parts(unsigned count) { return count; }
};

} // namespace shrake_rupley
