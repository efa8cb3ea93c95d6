#include "interfaces.cuh"

// Counts for each residue its partners: the other chains with an atom that is closer to one of its
// atoms than `cutoff`, or than it could bury area; one warp per residue.
KERNEL(32 * WARPS)
interface_degrees(const unsigned* header, const StructureSpan* structures,
                  const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                  const unsigned* ranges, int* degrees, unsigned cutoff, unsigned probe)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const Cells cells = CELLS_OF_PARAMS;
        int count = 0;
        each_partner(cells, structures[residue.structure], ranges, residue, atoms, cutoff, probe,
                     [&](unsigned, unsigned long long chains) { count += __popcll(chains); });
        if (lane() == 0)
            degrees[row] = count;
    });
}
