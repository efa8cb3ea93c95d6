#include "dssp.cuh"
#include "work.cuh"

// Within a ladder fewer consecutive residues than this have no bridge.
constexpr int GAP_MAX = 6;
// On one of its strands a bulge advances by fewer residues than this.
constexpr int BULGE_MAX = 3;
// The bit of a residue's marks that tells whether the ladder that begins with the residue's bridge
// 0 was joined to an earlier ladder. The bits for its other bridges follow.
constexpr unsigned JOINED_SHIFT = 8;

// Consecutive bridges of one kind, between the residues i to i_end and j to j_end.
struct Ladder {
    bool antiparallel;
    int i, i_end, j, j_end;
};

// The inputs of the search for ladders, among the residues begin ... < end.
struct Ladders {
    const float4* hydrogens;
    const Bridges* bridges;
    unsigned* marks;
    int begin, end;

    __device__ inline bool has_bridge(int residue, int partner, bool antiparallel) const
    {
        if (residue < begin || residue >= end || partner < 0)
            return false;
        for (unsigned bridge : bridges[residue].codes)
            if (bridge == bridge_to(partner, antiparallel))
                return true;
        return false;
    }

    // Whether a ladder begins with bridge `which` of residue i, and the partner is a later residue.
    __device__ inline bool begins(int i, unsigned which, Ladder& ladder) const
    {
        const unsigned bridge = bridges[i].codes[which];
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
        for (int residue = from; residue <= to; ++residue)
            if (!joined(hydrogens, end, residue))
                return false;
        return true;
    }

    __device__ inline bool can_join(const Ladder& ladder, const Ladder& next) const
    {
        if (ladder.antiparallel != next.antiparallel)
            return false;
        const int end = ladder.antiparallel ? next.j_end : ladder.j_end;
        const int begin = ladder.antiparallel ? ladder.j : next.j;
        const int i_gap = next.i - ladder.i_end, j_gap = begin - end;
        return j_gap >= 0 && (j_gap < BULGE_MAX || (j_gap < GAP_MAX && i_gap < BULGE_MAX))
            && are_joined(ladder.i_end + 1, next.i) && are_joined(end + 1, begin);
    }

    // Joins the first ladder that only a bulge separates from `ladder`; returns whether there is
    // one.
    __device__ inline bool join_next(Ladder& ladder) const
    {
        const int last = min(ladder.i_end + GAP_MAX, end);
        for (int i = ladder.i_end + 1; i < last; ++i) {
            for (unsigned which = 0; which < BRIDGES_MAX; ++which) {
                Ladder next;
                if (!begins(i, which, next) || is_joined(i, which))
                    continue;
                extend(next);
                if (!can_join(ladder, next))
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
        for (int residue = ladder.i; residue <= ladder.i_end; ++residue)
            atomicOr(&marks[residue], bits);
        for (int residue = ladder.j; residue <= ladder.j_end; ++residue)
            atomicOr(&marks[residue], bits);
    }

    // Whether residue i has a bridge to a later one.
    __device__ inline bool is_covered(int i) const
    {
        for (unsigned bridge : bridges[i].codes)
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
    each_thread(header, RESIDUES, [&](int residue) {
        if (!all.is_covered(residue))
            return;
        for (int before = max(residue - GAP_MAX + 1, begin); before < residue; ++before)
            if (all.is_covered(before))
                return;
        int last = residue;
        for (int i = residue; i < min(last + GAP_MAX, end); ++i) {
            for (unsigned which = 0; which < BRIDGES_MAX; ++which) {
                const unsigned bridge = bridges[i].codes[which];
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
