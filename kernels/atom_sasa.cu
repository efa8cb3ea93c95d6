#include "shrake_rupley.cuh"
#include "work.cuh"

// Writes the area of each atom in A^2.
struct WriteAtomAreas {
    static constexpr bool LISTS = false;
    float* areas;
    double scale;

    __device__ inline void operator()(const shrake_rupley::Context&, unsigned, unsigned,
                                      unsigned) const
    {
    }

    __device__ inline void atom(unsigned atom_index, unsigned long long area) const
    {
        if (lane() == 0)
            areas[atom_index] = float(double(area) * scale);
    }
};

// Computes the areas of the atoms of residues, or of ligands, in the model or in their chain alone;
// one warp per unit of `axis`, RESIDUES or LIGANDS. Atoms of no unit keep the initial null. The
// header has the test points as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
atom_sasa(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
          const Atom* atoms, CELL_PARAMS, float* areas /* updated */, unsigned axis,
          unsigned first, unsigned points, unsigned probe, unsigned own_chain)
{
    using namespace shrake_rupley;
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    const WriteAtomAreas write{areas, angstrom2_per_point(points)};
    each_warp(header, axis, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const Context context{work,
                              CELLS_OF_PARAMS,
                              structures[residue.structure].atom_grid,
                              residue.chain,
                              (const float*)header + first,
                              points,
                              int(probe),
                              own_chain ? residue.chain : ALL_CHAINS};
        residue_areas<Others::NONE_OF_CHAIN>(context, residue, atoms, write);
    });
}
