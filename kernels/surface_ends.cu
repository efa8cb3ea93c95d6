#include "exposed.cuh"
#include "work.cuh"

// Finds the exposed point of each body with the largest x, and of those the first; one warp per
// atom. A body is a tree of atoms. ends[], [atoms, 2], starts zeroed; that of a body's root gets the
// complement of the point's index, and x in 0.001 A from the grid's corner.
KERNEL(32 * WARPS)
surface_ends(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
             const Atom* atoms, POINT_PARAMS, unsigned* bodies /* updated */,
             unsigned* ends /* updated */)
{
    each_warp(header, ATOMS, [&](unsigned own) {
        const Atom atom = atoms[own];
        const Exposed points = EXPOSED_OF_PARAMS;
        if (!present(atom) || points.count[own] == 0)
            return;
        const PointRange mine = points.of(own);
        const Grid& grid = structure_of(structures, chains, atom.tag).atom_grid;
        // No point is so far from its atom.
        const int corner = atom.x - grid.x + (1 << 16);
        unsigned long long last = 0;
        for (unsigned at = mine.begin + lane(); at < mine.end; at += 32)
            last = max(last, (unsigned long long)(corner + int(points.x[at])) << 32 | ~at);
        for (unsigned stride = 16; stride > 0; stride /= 2)
            last = max(last, __shfl_xor_sync(~0u, last, stride));
        if (lane() == 0)
            atomicMax((unsigned long long*)(ends + 2 * root_shortening(bodies, own)), last);
    });
}
