#include "dssp.cuh"
#include "work.cuh"

// Fewer residues than this in a row have no bridge within a ladder.
constexpr int GAP_MAX = 6;
// A bulge has fewer residues than this on one strand.
constexpr int BULGE_MAX = 3;
// The bit of a residue's marks for bridge 0: the ladder that begins with it was joined to an
// earlier one. The bits for its other bridges follow.
constexpr unsigned JOINED_SHIFT = 8;

// Consecutive bridges of one kind, between the residues i to i_end and j to j_end.
struct Ladder {
    bool antiparallel;
    int i, i_end, j, j_end;
};

struct Ladders {
    const float4* hydrogens;
    const Bridges* bridges;
    unsigned* marks;
    int begin, end;

    __device__ inline bool has_bridge(int at, int partner, bool antiparallel) const
    {
        if (at < begin || at >= end || partner < 0)
            return false;
        for (unsigned bridge : bridges[at].of)
            if (bridge == bridge_to(partner, antiparallel))
                return true;
        return false;
    }

    // Whether a ladder begins with bridge `which` of residue i, and the partner is a later residue.
    __device__ inline bool begins(int i, unsigned which, Ladder& ladder) const
    {
        const unsigned bridge = bridges[i].of[which];
        const int j = int(bridge / 2);
        const bool antiparallel = bridge % 2;
        ladder = {antiparallel, i, i, j, j};
        const int step = antiparallel ? -1 : 1;
        return bridge != NO_BRIDGE && j > i && !has_bridge(i - 1, j - step, antiparallel);
    }

    __device__ inline void extend(Ladder& ladder) const
    {
        int& j = ladder.antiparallel ? ladder.j : ladder.j_end;
        const int step = ladder.antiparallel ? -1 : 1;
        for (; has_bridge(ladder.i_end + 1, j + step, ladder.antiparallel); j += step)
            ++ladder.i_end;
    }

    // Whether residues from - 1 to `to` are joined, each to the next.
    __device__ inline bool are_joined(int from, int to) const
    {
        for (int at = from; at <= to; ++at)
            if (!joined(hydrogens, end, at))
                return false;
        return true;
    }

    __device__ inline bool joins(const Ladder& ladder, const Ladder& next) const
    {
        if (ladder.antiparallel != next.antiparallel)
            return false;
        const int end = ladder.antiparallel ? next.j_end : ladder.j_end;
        const int begin = ladder.antiparallel ? ladder.j : next.j;
        const int i_gap = next.i - ladder.i_end, j_gap = begin - end;
        return j_gap >= 0 && (j_gap < BULGE_MAX || (j_gap < GAP_MAX && i_gap < BULGE_MAX))
            && are_joined(ladder.i_end + 1, next.i) && are_joined(end + 1, begin);
    }

    // Joins the first ladder that is separated by a bulge, if there is one.
    __device__ inline bool join_next(Ladder& ladder) const
    {
        const int last = min(ladder.i_end + GAP_MAX, end);
        for (int i = ladder.i_end + 1; i < last; ++i) {
            for (unsigned which = 0; which < BRIDGES_MAX; ++which) {
                Ladder next;
                if (!begins(i, which, next) || is_joined(i, which))
                    continue;
                extend(next);
                if (!joins(ladder, next))
                    continue;
                atomicOr(&marks[i], 1u << (JOINED_SHIFT + which));
                ladder.i_end = next.i_end;
                if (ladder.antiparallel)
                    ladder.j = next.j;
                else
                    ladder.j_end = next.j_end;
                return true;
            }
        }
        return false;
    }

    // Only this thread sets the bit, but with an atomic in L2, so the read bypasses L1.
    __device__ inline bool is_joined(int i, unsigned which) const
    {
        return __ldcg(&marks[i]) >> (JOINED_SHIFT + which) & 1u;
    }

    __device__ inline void mark(const Ladder& ladder) const
    {
        const unsigned bits = ladder.i_end > ladder.i ? IN_STRAND : IN_BRIDGE;
        for (int at = ladder.i; at <= ladder.i_end; ++at)
            atomicOr(&marks[at], bits);
        for (int at = ladder.j; at <= ladder.j_end; ++at)
            atomicOr(&marks[at], bits);
    }

    // Whether residue i has a bridge to a later one.
    __device__ inline bool is_covered(int i) const
    {
        for (unsigned bridge : bridges[i].of)
            if (bridge != NO_BRIDGE && int(bridge / 2) > i)
                return true;
        return false;
    }
};

// Marks the residues of ladders of one bridge, and of ladders of more bridges with their bulges.
// Ladders are joined in the order of their first residues, each with all ladders that it can join.
// Ladders whose first strands are GAP_MAX apart cannot join, so they form independent groups; the
// thread of a group's first residue processes the group. marks[] starts zeroed.
KERNEL(128)
ladders(const unsigned* header, const StructureSpan* structures, const float4* hydrogens,
        const Bridges* bridges, unsigned* marks /* updated */)
{
    const int begin = units(header, RESIDUES).begin, end = units(header, RESIDUES).end;
    const Ladders all{hydrogens, bridges, marks, begin, end};
    each_thread(header, RESIDUES, [&](int own) {
        if (!all.is_covered(own))
            return;
        for (int before = max(own - GAP_MAX + 1, begin); before < own; ++before)
            if (all.is_covered(before))
                return;
        int last = own;
        for (int i = own; i < min(last + GAP_MAX, end); ++i) {
            for (unsigned which = 0; which < BRIDGES_MAX; ++which) {
                const unsigned bridge = bridges[i].of[which];
                if (bridge == NO_BRIDGE)
                    break;
                if (int(bridge / 2) < i)
                    continue;
                last = i;
                Ladder ladder;
                if (all.begins(i, which, ladder) && !all.is_joined(i, which)) {
                    all.extend(ladder);
                    while (all.join_next(ladder)) {}
                    all.mark(ladder);
                }
            }
        }
    });
}
