#include "sheets.cuh"
#include "work.cuh"

// Writes the key of one ladder to its bridges.
struct LadderBridges {
    const Bridges* bridges;
    unsigned* keys;
    unsigned key;

    __device__ inline bool is_joined(int i, unsigned which) const
    {
        return keys[BRIDGES_MAX * i + which] != 0;
    }

    // Adds the bridges of a run: to the rows of both residues of each.
    __device__ inline void join(const Ladder& run, unsigned) const
    {
        for (int step = 0; step <= run.i_end - run.i; ++step) {
            const int i = run.i + step;
            const int j = run.antiparallel ? run.j_end - step : run.j + step;
            add(i, bridge_to(j, run.antiparallel));
            add(j, bridge_to(i, run.antiparallel));
        }
    }

    __device__ inline void add(int residue, unsigned bridge) const
    {
        for (unsigned which = 0; which < BRIDGES_MAX; ++which)
            if (bridges[residue].codes[which] == bridge)
                keys[BRIDGES_MAX * residue + which] = key;
    }
};

// Writes for each bridge the key of its ladder, keys[residues, BRIDGES_MAX], and for each residue
// the largest key of the ladders that it is in or that have a bulge there. Ladders are joined as by
// the kernel `ladders`. Each residue with a bridge becomes a tree of its own. keys[] and spans[]
// start zeroed.
KERNEL(128)
ladder_bridges(const unsigned* header, const StructureSpan* structures, const float4* hydrogens,
               const Bridges* bridges, unsigned* keys /* updated */, unsigned* spans /* updated */,
               unsigned* parents)
{
    wait_for_dependencies();
    const int begin = units(header, RESIDUES).begin, end = units(header, RESIDUES).end;
    const Ladders<LadderBridges> all{hydrogens, bridges, {bridges, keys, 0}, begin, end};
    each_thread(header, RESIDUES, [&](int residue) {
        parents[residue] = bridges[residue].codes[0] == NO_BRIDGE ? NO_TREE : residue;
        all.each_of_group(residue, [&](Ladder& ladder, unsigned which) {
            Ladders<LadderBridges> one = all;
            one.taken.key = ladder_key(ladder.i, which);
            one.extend(ladder);
            one.taken.join(ladder, which);
            while (one.join_next(ladder)) {}
            for (int i = ladder.i; i <= ladder.i_end; ++i)
                atomicMax(&spans[i], one.taken.key);
            for (int j = ladder.j; j <= ladder.j_end; ++j)
                atomicMax(&spans[j], one.taken.key);
        });
    });
}
