#include "sheets.cuh"
#include "work.cuh"

// The columns of a bridge. A residue has two bridges, and then its other columns.
constexpr unsigned BRIDGE_PARTNER = 0, BRIDGE_KIND = 1, BRIDGE_LADDER = 2, BRIDGE_COLUMNS = 3;
constexpr unsigned SHEET_COLUMN = 6, BONDS_COLUMN = 7, SHEET_COLUMNS = 9;

// Where the bridges of ladders are written to.
struct BridgePairs {
    const Bridges* bridges;
    const unsigned* keys;
    int* columns;
    // The first residue of the structure, and the end of the residues that may be read.
    unsigned first, end;

    __device__ inline bool has_first(unsigned residue) const
    {
        return columns[SHEET_COLUMNS * residue + BRIDGE_PARTNER] != NULL_COUNT;
    }

    __device__ inline void write(unsigned residue, bool second, unsigned partner,
                                 bool antiparallel, unsigned number) const
    {
        int* pair = columns + SHEET_COLUMNS * residue + BRIDGE_COLUMNS * second;
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

// Writes columns[residues, SHEET_COLUMNS]: the bridges of each residue, its sheet, and how many of
// its N-H's and of its O's partners are hydrogen bonds. One thread per residue; that of a sheet's
// root writes the bridges of the sheet's ladders in their order. columns[] starts null.
KERNEL(128)
sheet_columns(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
              const float4* hydrogens, const float* energies, const Bridges* bridges,
              const unsigned* keys, const unsigned* spans, const unsigned* parents,
              const unsigned* sheets, const unsigned* listed, int* columns /* updated */)
{
    wait_for_dependencies();
    const unsigned end = units(header, RESIDUES).end;
    each_thread(header, RESIDUES, [&](unsigned residue) {
        int* row = columns + SHEET_COLUMNS * residue;
        // Atomics in L2 wrote the key, so the read bypasses L1.
        if (const unsigned key = __ldcg(&spans[residue])) {
            const unsigned root = root_of(parents, first_residue(key));
            row[SHEET_COLUMN] = int(sheets[SHEET_VALUES * root + SHEET_NUMBER]);
        }
        if (hydrogens[residue].w != INCOMPLETE) {
            for (unsigned side = 0; side < 2; ++side) {
                const float* both = energies + 4 * residue + 2 * side;
                row[BONDS_COLUMN + side] = (both[0] < -0.5f) + (both[1] < -0.5f);
            }
        }
        if (parents[residue] != residue)
            return;
        const unsigned first = structures[residues[residue].structure].residue_start;
        const unsigned* sheet = sheets + SHEET_VALUES * residue;
        const BridgePairs all{bridges, keys, columns, first, end};
        for (unsigned place = sheet[LADDERS_BEGIN]; place < sheet[LADDERS_END]; ++place)
            all.write_ladder(listed[BRIDGES_MAX / 2 * first + place], place + 1);
    });
}
