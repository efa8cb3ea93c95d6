#include "ladders.cuh"
#include "work.cuh"

// The bit of a residue's marks that tells whether the ladder that begins with the residue's bridge
// 0 was joined to an earlier ladder. The bits for its other bridges follow.
constexpr unsigned JOINED_SHIFT = 8;

struct Marks {
    unsigned* marks;

    // Only this thread sets the bit, but with an atomic in L2, so the read bypasses L1.
    __device__ inline bool is_joined(int i, unsigned which) const
    {
        return __ldcg(&marks[i]) >> (JOINED_SHIFT + which) & 1u;
    }

    __device__ inline void join(const Ladder& next, unsigned which) const
    {
        atomicOr(&marks[next.i], 1u << (JOINED_SHIFT + which));
    }

    __device__ inline void mark(const Ladder& ladder) const
    {
        const unsigned bits = ladder.i_end > ladder.i ? IN_STRAND : IN_BRIDGE;
        for (int residue = ladder.i; residue <= ladder.i_end; ++residue)
            atomicOr(&marks[residue], bits);
        for (int residue = ladder.j; residue <= ladder.j_end; ++residue)
            atomicOr(&marks[residue], bits);
    }
};

// Marks the residues of ladders of one bridge, and of ladders of more bridges with their bulges.
// Ladders are joined in the order of their first residues, each with all ladders that it can join;
// the thread of a group's first residue processes the group. marks[] starts zeroed.
KERNEL(128)
ladders(const unsigned* header, const StructureSpan* structures, const float4* hydrogens,
        const Bridges* bridges, unsigned* marks /* updated */)
{
    wait_for_dependencies();
    const int begin = units(header, RESIDUES).begin, end = units(header, RESIDUES).end;
    const Ladders<Marks> all{hydrogens, bridges, {marks}, begin, end};
    each_thread(header, RESIDUES, [&](int residue) {
        all.each_of_group(residue, [&](Ladder& ladder, unsigned) {
            all.extend(ladder);
            while (all.join_next(ladder)) {}
            all.taken.mark(ladder);
        });
    });
}
