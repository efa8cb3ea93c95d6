// The nearest residues of a residue, with a warp.
#pragma once
#include "contacts.cuh"

// The most neighbours of a residue.
constexpr unsigned NEAREST_MAX = 64;
constexpr unsigned NO_NEIGHBOUR = ~0u;

// A residue at a squared distance. Of equally near residues the one with the lower index is nearer.
struct Neighbour {
    unsigned long long square;
    unsigned residue;

    __device__ inline bool is_nearer(Neighbour other) const
    {
        return square < other.square || (square == other.square && residue < other.residue);
    }

    // The neighbour of lane `from`.
    __device__ inline Neighbour of_lane(int from) const
    {
        return {__shfl_sync(~0u, square, from), __shfl_sync(~0u, residue, from)};
    }

    // The neighbour of the lane before.
    __device__ inline Neighbour of_lane_before() const
    {
        return {__shfl_up_sync(~0u, square, 1), __shfl_up_sync(~0u, residue, 1)};
    }
};

// The nearest residues so far, sorted: `low` of lane k is the one of rank k, `high` the one of rank
// k + 32.
struct NearestList {
    unsigned count;
    Neighbour low, high;
    // The residue of the last rank below `count`; a residue must be nearer to be inserted.
    Neighbour last;

    __device__ inline void clear() { low = high = last = {~0ull, NO_NEIGHBOUR}; }

    __device__ inline bool is_full() const { return last.residue != NO_NEIGHBOUR; }

    // Inserts the residues of all lanes for which `is_neighbour` is true.
    __device__ inline void insert_all(bool is_neighbour, unsigned long long square, unsigned residue)
    {
        const Neighbour candidate{square, residue};
        unsigned found = __ballot_sync(~0u, is_neighbour && candidate.is_nearer(last));
        for (; found; found &= found - 1) {
            const Neighbour next = candidate.of_lane(__ffs(found) - 1);
            if (next.is_nearer(last))
                insert(next);
        }
    }

private:
    __device__ inline void insert(Neighbour next)
    {
        const unsigned place = __popc(__ballot_sync(~0u, low.is_nearer(next)))
            + __popc(__ballot_sync(~0u, high.is_nearer(next)));
        const Neighbour carried = low.of_lane(31);
        const Neighbour low_before = low.of_lane_before();
        Neighbour high_before = high.of_lane_before();
        if (lane() == 0)
            high_before = carried;
        if (lane() >= place)
            low = lane() == place ? next : low_before;
        if (32 + lane() >= place)
            high = 32 + lane() == place ? next : high_before;
        const bool is_low = count <= 32;
        const Neighbour ranks = is_low ? low : high;
        last = ranks.of_lane(int(count - 1) % 32);
    }
};

// Calls write(rank, other) for each rank below `count`, with the nearest residues that `search`
// finds, and with NO_NEIGHBOUR for the ranks behind them. The first search looks within `reach`.
template <typename Search, typename Write>
__device__ inline void list_nearest(const Search& search, unsigned count, unsigned reach,
                                    Write write)
{
    NearestList nearest;
    nearest.count = count;
    nearest.clear();
    if (search.is_searchable()) {
        for (unsigned radius = reach;; radius = min(2 * radius, unsigned(REACH))) {
            nearest.clear();
            search.each_within(radius, 0, [&](bool is_neighbour, unsigned other) {
                nearest.insert_all(is_neighbour, is_neighbour ? search.square(other) : 0, other);
            });
            if (nearest.is_full() || radius == REACH)
                break;
        }
        // Some neighbours are farther than a search in cells reaches, so all residues are tested.
        if (!nearest.is_full()) {
            nearest.clear();
            const unsigned start = search.structure.residue_start;
            for (unsigned step = 0; step < search.structure.residue_count; step += 32) {
                const unsigned other = start + step + lane();
                const bool is_neighbour = step + lane() < search.structure.residue_count
                    && search.is_wanted(other);
                nearest.insert_all(is_neighbour, is_neighbour ? search.square(other) : 0, other);
            }
        }
    }
    for (unsigned rank = lane(); rank < count; rank += 32)
        write(rank, rank < 32 ? nearest.low.residue : nearest.high.residue);
}
