#include "cells.cuh"
#include "vector.cuh"
#include "work.cuh"

// The search for ligands and metals ends at this distance, in 0.001 A.
constexpr int LIGAND_REACH = 12000;

// Finds for each residue the nearest atom of a ligand and the nearest metal, one warp per residue.
// Writes their distances in A, the pairs of heavy atoms of residue and ligands that are closer than
// the cutoff, and the index of the nearest ligand in its structure; of equally near ones the first.
KERNEL(32 * WARPS)
nearest_ligand(const unsigned* header, const StructureSpan* structures,
               const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
               const unsigned* ligand_of, float* distances, int* contacts, unsigned cutoff)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const StructureSpan& structure = structures[residue.structure];
        // The squared distance in the upper and the ligand in the lower 32 bits, so that of equal
        // distances the one with the lower ligand is less.
        unsigned long long nearest = ~0ull;
        unsigned metal = ~0u, pairs = 0;
        if (structure.ligand_atom_count > 0 && residue.atom_count > 0) {
            Position low, high;
            corners(residue, atoms, low, high);
            const Cells cells = CELLS_OF_PARAMS;
            const unsigned first_of_ligands = structure.atom_start + structure.atom_count;
            const Runs runs(structure.atom_grid, low, high, LIGAND_REACH);
            for (unsigned base = 0; base < runs.count; base += 32) {
                unsigned begin = 0, end = 0;
                if (base + lane() < runs.count)
                    runs.get(base + lane(), cells.start, begin, end);
                for (unsigned found = __ballot_sync(~0u, begin < end); found; found &= found - 1) {
                    const int leader = __ffs(found) - 1;
                    const unsigned from = __shfl_sync(~0u, begin, leader);
                    const unsigned to = __shfl_sync(~0u, end, leader);
                    for (unsigned other = from + lane(); other < to; other += 32) {
                        const unsigned source = cells.source[other], tag = cells.tag[other];
                        if (source < first_of_ligands || !(tag & (TAG_LIGAND | TAG_METAL)))
                            continue;
                        const int x = cells.x[other], y = cells.y[other], z = cells.z[other];
                        unsigned d2 = ~0u, near = 0;
                        for (unsigned a = 0; a < residue.atom_count; ++a) {
                            const Atom atom = atoms[residue.atom_start + a];
                            const unsigned pair = squared(x - atom.x, y - atom.y, z - atom.z);
                            d2 = min(d2, pair);
                            near += pair < cutoff * cutoff;
                        }
                        if (tag & TAG_LIGAND) {
                            const unsigned long long ligand = ligand_of[source];
                            nearest = min(nearest, (unsigned long long)(d2) << 32 | ligand);
                            pairs += near;
                        }
                        if (tag & TAG_METAL)
                            metal = min(metal, d2);
                    }
                }
            }
        }
        for (unsigned stride = 16; stride > 0; stride /= 2) {
            nearest = min(nearest, __shfl_xor_sync(~0u, nearest, stride));
            metal = min(metal, __shfl_xor_sync(~0u, metal, stride));
            pairs += __shfl_xor_sync(~0u, pairs, stride);
        }
        if (lane() == 0) {
            const unsigned d2 = unsigned(nearest >> 32);
            const unsigned reach2 = LIGAND_REACH * LIGAND_REACH;
            const bool found = d2 < reach2;
            distances[2 * row] = found ? float(sqrt(double(d2)) * 0.001) : null_real();
            distances[2 * row + 1]
                = metal < reach2 ? float(sqrt(double(metal)) * 0.001) : null_real();
            contacts[2 * row] = int(pairs);
            contacts[2 * row + 1] = found ? int(unsigned(nearest)) : NULL_COUNT;
        }
    });
}
