#include "areas.cuh"

// Computes the areas of the atoms of residues, or of ligands, in the model or in their chain alone;
// one warp per unit of `axis`, RESIDUES or LIGANDS. Atoms of no unit keep the initial null. The
// header has the test points as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
atom_sasa(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
          const Atom* atoms, CELL_PARAMS, float* areas /* updated */, unsigned axis,
          unsigned first, unsigned points, unsigned probe, unsigned own_chain)
{
    wait_for_dependencies();
    areas::write_atom_areas<shrake_rupley::ShrakeRupley>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, areas, axis, first, points, probe,
        own_chain);
}
