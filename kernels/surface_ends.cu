#include "exposed.cuh"
#include "work.cuh"

// Finds the exposed point of each body with the largest x, and the first of several such points;
// one warp per atom. A body is a tree of atoms. ends[], [atoms, 2], starts zeroed; the element of a
// body's root gets the complement of the point's index, and x in 0.001 A from the grid's corner.
KERNEL(32 * WARPS)
surface_ends(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
             const Atom* atoms, POINT_PARAMS, unsigned* bodies /* updated */,
             unsigned* ends /* updated */)
{
    wait_for_dependencies();
    each_warp(header, ATOMS, [&](unsigned atom_index) {
        const Atom atom = atoms[atom_index];
        const Exposed points = EXPOSED_OF_PARAMS;
        if (!present(atom) || points.count[atom_index] == 0)
            return;
        const PointRange mine = points.range_of(atom_index);
        const Grid& grid = structure_of(structures, chains, atom.tag).atom_grid;
        // No point is so far from its atom, so the sum is not negative.
        const int corner = atom.x - grid.x + (1 << 16);
        unsigned long long last = 0;
        for (unsigned point = mine.begin + lane(); point < mine.end; point += 32)
            last = max(last, (unsigned long long)(corner + int(points.x[point])) << 32 | ~point);
        for (unsigned stride = 16; stride > 0; stride /= 2)
            last = max(last, __shfl_xor_sync(~0u, last, stride));
        if (lane() == 0)
            atomicMax((unsigned long long*)(ends + 2 * root_shortening(bodies, atom_index)), last);
    });
}
