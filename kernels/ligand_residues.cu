#include "cells.cuh"
#include "vector.cuh"
#include "work.cuh"

// Counts for each ligand the residues with an atom that is closer to one of its atoms than the
// cutoff, one warp per ligand. `residue_of` has the residue of each atom, plus one.
KERNEL(32 * WARPS)
ligand_residues(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const ResidueSpan* ligands, const Atom* atoms,
                CELL_PARAMS, const unsigned* residue_of, int* counts, unsigned cutoff)
{
    wait_for_dependencies();
    each_warp(header, LIGANDS, [&](unsigned ligand_index) {
        const ResidueSpan ligand = ligands[ligand_index];
        const auto is_near = [&](int x, int y, int z) {
            for (unsigned a = 0; a < ligand.atom_count; ++a) {
                const Atom atom = atoms[ligand.atom_start + a];
                if (squared(x - atom.x, y - atom.y, z - atom.z) < cutoff * cutoff)
                    return true;
            }
            return false;
        };
        // Whether an atom of a residue is near, and no earlier one is.
        const auto is_first = [&](const Cells& cells, unsigned sorted) {
            const unsigned source = cells.source[sorted], residue = residue_of[source];
            if (residue == 0 || !is_near(cells.x[sorted], cells.y[sorted], cells.z[sorted]))
                return false;
            for (unsigned a = residues[residue - 1].atom_start; a < source; ++a)
                if (is_near(atoms[a].x, atoms[a].y, atoms[a].z))
                    return false;
            return true;
        };
        int count = 0;
        if (ligand.atom_count > 0) {
            Position low, high;
            corners(ligand, atoms, low, high);
            const Cells cells = CELLS_OF_PARAMS;
            const Runs runs(structures[ligand.structure].atom_grid, low, high, int(cutoff));
            for (unsigned run = lane(); run < runs.count; run += 32) {
                unsigned begin, end;
                runs.get(run, cells.start, begin, end);
                for (unsigned sorted = begin; sorted < end; ++sorted)
                    count += is_first(cells, sorted);
            }
        }
        count = warp_sum(count);
        if (lane() == 0)
            counts[ligand_index] = count;
    });
}
