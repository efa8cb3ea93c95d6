// What the kernels of solvent-accessible areas write, by either algorithm:
// shrake_rupley::ShrakeRupley with the number of test points as `count`, or lee_richards::LeeRichards
// with that of slices. `first` is the index of the test points in the header.
#pragma once
#include "shrake_rupley.cuh"
#include "work.cuh"

namespace areas {
using namespace shrake_rupley;

// Writes the areas of each residue in the model, or in its chain alone if OTHERS is ONE_CHAIN. If
// OTHERS is CHAINS, also writes the areas that other chains bury.
template <typename Algorithm, Others OTHERS>
__device__ inline void write_areas(const unsigned* header, const StructureSpan* structures,
                                   const ResidueSpan* residues, const Atom* atoms,
                                   const Cells& cells, float* areas, float* deltas,
                                   unsigned first, unsigned count, unsigned probe)
{
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const Context context{work,
                              cells,
                              structures[residue.structure].atom_grid,
                              residue.chain,
                              (const float*)header + first,
                              count,
                              int(probe),
                              residue.chain};
        const unsigned long long area
            = Algorithm::template areas<OTHERS>(context, residue, atoms);
        if (lane() <= POLAR)
            areas[3 * row + lane()] = angstrom2(area, residue, Algorithm::parts(count));
        if (OTHERS == Others::CHAINS && lane() == DELTA)
            deltas[row] = angstrom2(area, residue, Algorithm::parts(count));
    });
}

// Writes the areas of residues that glycans bury: the area in the polymer less the area in the polymer
// with its glycans, whose atoms follow the polymer's.
template <typename Algorithm>
__device__ inline void write_glycan_deltas(const unsigned* header, const StructureSpan* structures,
                                           const ResidueSpan* residues, const Atom* atoms,
                                           const Cells& cells, float* deltas, unsigned first,
                                           unsigned count, unsigned probe)
{
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const StructureSpan& structure = structures[residue.structure];
        unsigned long long area = 0;
        if (structure.glycan_atom_count > 0) {
            const unsigned end = structure.atom_start + structure.atom_count;
            const Context context{work,
                                  cells,
                                  structure.atom_grid,
                                  residue.chain,
                                  (const float*)header + first,
                                  count,
                                  int(probe),
                                  end,
                                  end + structure.glycan_atom_count};
            area = Algorithm::template areas<Others::GLYCANS>(context, residue, atoms);
        }
        if (lane() == DELTA)
            deltas[row] = angstrom2(area, residue, Algorithm::parts(count));
    });
}

// Writes the area of each atom in A^2.
struct WriteAtomAreas {
    static constexpr bool LISTS = false;
    float* areas;
    double scale;

    __device__ inline void operator()(const Context&, unsigned, unsigned, unsigned) const {}

    __device__ inline void atom(unsigned atom_index, unsigned long long area) const
    {
        if (lane() == 0)
            areas[atom_index] = float(double(area) * scale);
    }
};

// Writes the areas of the atoms of residues, or of ligands, in the model or in their chain alone, for
// each unit of `axis`, RESIDUES or LIGANDS.
template <typename Algorithm>
__device__ inline void write_atom_areas(const unsigned* header, const StructureSpan* structures,
                                        const ResidueSpan* residues, const Atom* atoms,
                                        const Cells& cells, float* areas, unsigned axis,
                                        unsigned first, unsigned count, unsigned probe,
                                        bool own_chain)
{
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    const WriteAtomAreas write{areas, angstrom2_per_point(Algorithm::parts(count))};
    each_warp(header, axis, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const Context context{work,
                              cells,
                              structures[residue.structure].atom_grid,
                              residue.chain,
                              (const float*)header + first,
                              count,
                              int(probe),
                              own_chain ? residue.chain : ALL_CHAINS};
        Algorithm::template areas<Others::NONE_OF_CHAIN>(context, residue, atoms, write);
    });
}

// Writes the area of each ligand alone, and the part of it that the rest of the model buries.
template <typename Algorithm>
__device__ inline void write_ligand_areas(const unsigned* header, const StructureSpan* structures,
                                          const ResidueSpan* ligands, const Atom* atoms,
                                          const Cells& cells, float* areas, unsigned first,
                                          unsigned count, unsigned probe)
{
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, LIGANDS, [&](unsigned ligand_index) {
        const ResidueSpan ligand = ligands[ligand_index];
        const Context context{work,
                              cells,
                              structures[ligand.structure].atom_grid,
                              ligand.chain,
                              (const float*)header + first,
                              count,
                              int(probe),
                              ligand.atom_start,
                              ligand.atom_start + ligand.atom_count};
        const unsigned long long area
            = Algorithm::template areas<Others::REST>(context, ligand, atoms);
        const unsigned long long buried = __shfl_sync(~0u, area, DELTA);
        if (lane() == ALL) {
            const unsigned parts = Algorithm::parts(count);
            areas[2 * ligand_index] = angstrom2(area + buried, ligand, parts);
            areas[2 * ligand_index + 1] = angstrom2(buried, ligand, parts);
        }
    });
}

} // namespace areas
