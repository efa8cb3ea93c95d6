#include "cells.cuh"
#include "work.cuh"

// Atoms within the radius of an atom, itself included, by a warp. Where the grid
// does not wrap, candidates are so near that no difference needs a bound.
template <bool BOUNDED>
__device__ inline int atoms_within(const Cells& cells, const Grid& grid, Atom atom,
                                   unsigned radius)
{
    int near = 0;
    for_each_candidate(cells, grid, atom, radius, [&](unsigned other) {
        const int dx = cells.x[other] - atom.x;
        const int dy = cells.y[other] - atom.y;
        const int dz = cells.z[other] - atom.z;
        const unsigned d2 = BOUNDED ? squared(dx, dy, dz) : dx * dx + dy * dy + dz * dz;
        near += d2 < radius * radius;
    });
    return warp_sum(near);
}

// Mean and largest cx over a residue's atoms: the free over the filled volume of
// the sphere around an atom (Pintar et al. 2002), both in A^3; one warp a residue.
KERNEL(32 * WARPS)
protrusion(const unsigned* header, const Structure* structures, const Residue* residues,
           const Atom* atoms, CELL_PARAMS, float* cx, unsigned radius, double sphere_volume,
           double atom_volume)
{
    each_warp(header, RESIDUES, [&](unsigned own) {
        const Residue residue = residues[own];
        const Grid& grid = structures[residue.structure].atom_grid;
        const bool bounded = wraps(grid) || radius + (1u << grid.shift) > REACH;
        const Cells cells = CELLS_OF_PARAMS;
        double sum = 0.0, largest = 0.0;
        for (unsigned a = 0; a < residue.atom_count; ++a) {
            const Atom atom = atoms[residue.atom_start + a];
            const int near = bounded ? atoms_within<true>(cells, grid, atom, radius)
                                     : atoms_within<false>(cells, grid, atom, radius);
            const double filled = near * atom_volume;
            const double free_to_filled = (sphere_volume - filled) / filled;
            sum += free_to_filled;
            largest = a == 0 ? free_to_filled : fmax(largest, free_to_filled);
        }
        if (threadIdx.x % 32 == 0) {
            const bool any = residue.atom_count > 0;
            cx[2 * own] = any ? float(sum / residue.atom_count) : null_real();
            cx[2 * own + 1] = any ? float(largest) : null_real();
        }
    });
}
