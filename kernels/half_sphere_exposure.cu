#include "gather.cuh"
#include "work.cuh"

// Counts the C-alphas within the radius above and below the plane through the residue's C-alpha
// that is normal to its direction: those of all chains, or of the residue's chain; one warp per
// residue.
KERNEL(32 * WARPS)
half_sphere_exposure(const unsigned* header, const StructureSpan* structures,
                     const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                     const double* normals, int* counts, unsigned radius, unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const unsigned lane = threadIdx.x % 32;
        const Atom atom = atoms[residue];
        const double* normal = normals + 3 * residue;
        const double nx = normal[0];
        if (!present(atom) || isnan(nx)) {
            if (lane < 2)
                counts[2 * residue + lane] = NULL_COUNT;
            return;
        }
        const double ny = normal[1], nz = normal[2];
        int above = 0, near = 0;
        const Cells cells = CELLS_OF_PARAMS;
        const Grid& grid = structures[residues[residue].structure].residue_grid;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        each_candidate(cells, grid, atom, radius, places, [&](bool has_atom, unsigned other) {
            if (!has_atom || (own_chain && !same_chain(cells.tag[other], atom.tag)))
                return;
            const int dx = cells.x[other] - atom.x;
            const int dy = cells.y[other] - atom.y;
            const int dz = cells.z[other] - atom.z;
            if (squared(dx, dy, dz) < radius * radius) {
                above += dx * nx + dy * ny + dz * nz > 0.0;
                ++near;
            }
        });
        above = warp_sum(above);
        near = warp_sum(near);
        if (lane == 0) {
            counts[2 * residue] = above;
            // Leaves out the residue itself, which is near and not above.
            counts[2 * residue + 1] = near - above - 1;
        }
    });
}
