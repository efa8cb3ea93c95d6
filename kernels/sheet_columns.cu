#include "sheets.cuh"
#include "work.cuh"

// A column of a residue's bridge, which has two.
constexpr unsigned BRIDGE_PARTNER = 0, BRIDGE_KIND = 1, BRIDGE_LADDER = 2, BRIDGE_COLUMNS = 3;

// Where the bridges of ladders are written to: pairs[residues, 2, BRIDGE_COLUMNS].
struct BridgePairs {
    const Bridges* bridges;
    const unsigned* keys;
    int* pairs;
    // The first residue of the structure, and the end of the residues that may be read.
    unsigned first, end;

    __device__ inline bool has_first(unsigned residue) const
    {
        return pairs[2 * BRIDGE_COLUMNS * residue + BRIDGE_PARTNER] != NULL_COUNT;
    }

    __device__ inline void write(unsigned residue, bool second, unsigned partner,
                                 bool antiparallel, unsigned number) const
    {
        int* pair = pairs + BRIDGE_COLUMNS * (2 * residue + second);
        pair[BRIDGE_PARTNER] = int(partner - first);
        pair[BRIDGE_KIND] = antiparallel;
        pair[BRIDGE_LADDER] = int(number);
    }

    // Calls visit(i, j, antiparallel) for the bridges of a ladder, in their order along the strand
    // of i.
    template <typename Visit> __device__ inline void each_bridge(unsigned key, Visit visit) const
    {
        unsigned last = first_residue(key);
        for (unsigned i = last; i < min(last + GAP_MAX, end); ++i) {
            for (unsigned which = 0; which < BRIDGES_MAX; ++which) {
                const unsigned bridge = bridges[i].codes[which];
                if (keys[BRIDGES_MAX * i + which] != key || bridge / 2 < i)
                    continue;
                last = i;
                visit(i, bridge / 2, bool(bridge % 2));
            }
        }
    }

    // Writes the bridges of a ladder. On each strand they are second bridges if a residue of the
    // strand has a first one, and replace earlier second ones. The strand of j is written after
    // that of i. If a bulge gives a residue j two partners, it keeps the one that DSSP writes last.
    __device__ inline void write_ladder(unsigned key, unsigned number) const
    {
        bool second_of_i = false, second_of_j = false;
        each_bridge(key, [&](unsigned i, unsigned j, bool) {
            second_of_i |= has_first(i);
            second_of_j |= has_first(j);
        });
        each_bridge(key, [&](unsigned i, unsigned j, bool antiparallel) {
            write(i, second_of_i, j, antiparallel, number);
        });
        unsigned before = NO_BRIDGE;
        each_bridge(key, [&](unsigned i, unsigned j, bool antiparallel) {
            if (!antiparallel || j != before)
                write(j, second_of_j, i, antiparallel, number);
            before = j;
        });
    }
};

// Writes the bridges of each residue, and labels[residues, 3]: its sheet, and how many of its N-H's
// and of its O's partners are hydrogen bonds. One thread per residue; that of a sheet's root writes
// the bridges of the sheet's ladders in their order. pairs[] starts null.
KERNEL(128)
sheet_columns(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
              const float4* hydrogens, const float* energies, const Bridges* bridges,
              const unsigned* keys, const unsigned* spans, const unsigned* parents,
              const unsigned* sheets, const unsigned* ranges, const unsigned* listed,
              int* pairs /* updated */, int* labels)
{
    const unsigned end = units(header, RESIDUES).end;
    each_thread(header, RESIDUES, [&](unsigned residue) {
        // Atomics in L2 wrote the key, so the read bypasses L1.
        const unsigned key = __ldcg(&spans[residue]);
        labels[3 * residue]
            = key ? int(sheets[root_of(parents, first_residue(key))]) : NULL_COUNT;
        const bool complete = hydrogens[residue].w != INCOMPLETE;
        for (unsigned side = 0; side < 2; ++side) {
            const float* both = energies + 4 * residue + 2 * side;
            labels[3 * residue + 1 + side]
                = complete ? (both[0] < -0.5f) + (both[1] < -0.5f) : NULL_COUNT;
        }
        if (parents[residue] != residue)
            return;
        const unsigned first = structures[residues[residue].structure].residue_start;
        const BridgePairs all{bridges, keys, pairs, first, end};
        for (unsigned place = ranges[2 * residue]; place < ranges[2 * residue + 1]; ++place)
            all.write_ladder(listed[BRIDGES_MAX / 2 * first + place], place + 1);
    });
}
