#include "interfaces.cuh"

// Computes for each partner of a residue the part of the residue's area in its own chain that the
// partner alone buries, in units of 1e-6 A^2 per point; one warp per residue. The header has the
// test points as for sasa; `rooms` and `ends` are those of interface_partners.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
interface_areas(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, const unsigned* rooms,
                const int* ends, const unsigned* partners, unsigned long long* buried,
                unsigned first, unsigned points, unsigned probe)
{
    using namespace shrake_rupley;
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        if (residue.atom_count == 0)
            return;
        const StructureSpan& structure = structures[residue.structure];
        const Entries entries = partners_of(structure, ends, row, rooms + 2 * residue.structure);
        const Cells cells = CELLS_OF_PARAMS;
        for (unsigned place = entries.begin; place < entries.end; ++place) {
            const Context context{work,
                                  cells,
                                  structure.atom_grid,
                                  residue.chain,
                                  (const float*)header + first,
                                  points,
                                  int(probe),
                                  partners[place]};
            const unsigned long long area
                = residue_areas<Others::ONE_CHAIN>(context, residue, atoms);
            if (lane() == DELTA)
                buried[place] = area;
        }
    });
}
