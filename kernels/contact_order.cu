#include "cells.cuh"
#include "work.cuh"

// Over contacts of a residue's atoms with atoms of other residues of its chain:
// the mean difference of the residues' places, and sum and number; one warp a
// residue.
KERNEL(32 * WARPS)
contact_order(const unsigned* header, const Structure* structures, const Residue* residues,
              const Atom* atoms, CELL_PARAMS, const unsigned* residue_of, float* means,
              unsigned long long* sums, unsigned radius)
{
    each_warp(header, RESIDUES, [&](unsigned own) {
        const Residue residue = residues[own];
        const Grid& grid = structures[residue.structure].atom_grid;
        const Cells cells = CELLS_OF_PARAMS;
        unsigned long long sum = 0, count = 0;
        for (unsigned a = 0; a < residue.atom_count; ++a) {
            const Atom atom = atoms[residue.atom_start + a];
            for_each_candidate(cells, grid, atom, radius, [&](unsigned other) {
                const unsigned d2 = squared(cells.x[other] - atom.x, cells.y[other] - atom.y,
                                            cells.z[other] - atom.z);
                if (d2 >= radius * radius || !same_chain(cells.tag[other], atom.tag))
                    return;
                const unsigned place = residue_of[cells.source[other]];
                if (place != 0 && place != own + 1) {
                    sum += abs(int(place) - int(own + 1));
                    ++count;
                }
            });
        }
        sum = warp_sum(sum);
        count = warp_sum(count);
        if (threadIdx.x % 32 == 0) {
            sums[2 * own] = sum;
            sums[2 * own + 1] = count;
            means[own] = count > 0 ? float(double(sum) / double(count)) : null_real();
        }
    });
}
