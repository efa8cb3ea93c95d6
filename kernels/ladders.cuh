// Ladders: runs of consecutive bridges, and runs that only bulges separate. Two kernels find them
// in the same order.
#pragma once
#include "dssp.cuh"

// In a ladder the next bridge is fewer residues than this after the last one, on either strand.
constexpr int GAP_MAX = 6;
// On one of its strands a bulge advances by fewer residues than this.
constexpr int BULGE_MAX = 3;

// Consecutive bridges of one kind, between the residues i to i_end and j to j_end.
struct Ladder {
    bool antiparallel;
    int i, i_end, j, j_end;
};

// The inputs of the search for ladders, among the residues begin ... < end. `taken` knows which
// ladders were joined to earlier ones.
template <typename Taken> struct Ladders {
    const float4* hydrogens;
    const Bridges* bridges;
    Taken taken;
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
                if (!begins(i, which, next) || taken.is_joined(i, which))
                    continue;
                extend(next);
                if (!can_join(ladder, next))
                    continue;
                taken.join(next, which);
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

    // Whether residue i has a bridge to a later one.
    __device__ inline bool is_covered(int i) const
    {
        for (unsigned bridge : bridges[i].codes)
            if (bridge != NO_BRIDGE && int(bridge / 2) > i)
                return true;
        return false;
    }

    // Calls take(ladder, which) for the ladders of a group that are not joined to earlier ones, in
    // their order, each before it is extended; `which` is its first bridge's place. Ladders whose
    // first strands are GAP_MAX apart cannot join, so they form independent groups. Only the first
    // residue of a group takes its ladders.
    template <typename Take> __device__ inline void each_of_group(int residue, Take take) const
    {
        if (!is_covered(residue))
            return;
        for (int before = max(residue - GAP_MAX + 1, begin); before < residue; ++before)
            if (is_covered(before))
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
                if (begins(i, which, ladder) && !taken.is_joined(i, which))
                    take(ladder, which);
            }
        }
    }
};
