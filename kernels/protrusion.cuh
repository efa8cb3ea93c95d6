// Protrusion, which protrusion.cu and protrusion_own_chain.cu share. There are two kernels because
// a test of each atom's chain would cost the first one registers.
#pragma once
#include "few.cuh"
#include "work.cuh"

// Computes the mean and the largest cx over each residue's atoms. cx is the ratio of free to filled
// volume in the sphere around an atom (Pintar et al. 2002), which atoms of all chains fill, or of the
// residue's chain if OWN_CHAIN.
template <bool OWN_CHAIN>
__device__ inline void write_protrusion(const unsigned* header, const StructureSpan* structures,
                                        const ResidueSpan* residues, const Atom* atoms,
                                        const Cells& cells, float* cx, unsigned radius,
                                        double sphere_volume, double atom_volume)
{
    Around& around = warp_memory<Around, WARPS>();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const Grid& grid = structures[residue.structure].atom_grid;
        int near[FEW];
        double sum = 0.0, largest = null_double();
        const auto begin = [&] {
            for (int& count : near)
                count = 0;
        };
        const auto visit = [&](const Few& few, float4 candidate, unsigned) {
            few.each(candidate, radius, [&](unsigned k, int add) { near[k] += add; });
        };
        const auto end = [&](unsigned length) {
#pragma unroll
            for (unsigned k = 0; k < FEW; ++k) {
                const double filled = warp_sum(near[k]) * atom_volume;
                const double free_to_filled = (sphere_volume - filled) / filled;
                if (k < length) {
                    sum += free_to_filled;
                    largest = fmax(free_to_filled, largest);
                }
            }
        };
        const auto want = [&](unsigned sorted) {
            return !OWN_CHAIN || tag_chain(cells.tag[sorted]) == residue.chain;
        };
        each_few(around, cells, grid, residue, atoms, radius, want, [](unsigned) { return 0u; },
                 begin, visit, end);
        if (lane() == 0) {
            const bool any = residue.atom_count > 0;
            cx[2 * row] = any ? float(sum / residue.atom_count) : null_real();
            cx[2 * row + 1] = any ? float(largest) : null_real();
        }
    });
}
