#include "exposed.cuh"
#include "work.cuh"

// Joins the trees of exposed points that are closer than `apart`: those of an atom, and those of two
// atoms, whose second is at d from the first and has a radius of `radius` - apart with the probe.
template <bool IS_ONE_ATOM>
__device__ inline void join_points(const Exposed& points, PointRange own, PointRange others,
                                   float dx, float dy, float dz, float radius, float apart,
                                   unsigned* parents)
{
    for (unsigned base = own.begin; base < own.end; base += 32) {
        const unsigned at = base + lane();
        float x = 0.0f, y = 0.0f, z = 0.0f;
        bool is_near = at < own.end;
        if (is_near) {
            x = points.x[at] - dx;
            y = points.y[at] - dy;
            z = points.z[at] - dz;
            is_near = IS_ONE_ATOM || square_of(x, y, z) < square_of(radius);
        }
        for (unsigned found = __ballot_sync(~0u, is_near); found; found &= found - 1) {
            const int leader = __ffs(found) - 1;
            const float from_x = __shfl_sync(~0u, x, leader), from_y = __shfl_sync(~0u, y, leader),
                        from_z = __shfl_sync(~0u, z, leader);
            const unsigned point = base + leader, end = IS_ONE_ATOM ? point : others.end;
            for (unsigned other = others.begin + lane(); other < end; other += 32) {
                const float d2 = square_of(points.x[other] - from_x, points.y[other] - from_y,
                                           points.z[other] - from_z);
                if (d2 < square_of(apart))
                    join<true>(parents, point, other);
            }
            __syncwarp();
        }
    }
}

// Joins the trees of exposed points that are closer than `apart`, and the trees of atoms whose
// spheres overlap, of all chains or of the atom's chain; one warp per atom.
KERNEL(32 * WARPS)
join_surface(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
             const Atom* atoms, CELL_PARAMS, POINT_PARAMS, unsigned* parents /* updated */,
             unsigned* bodies /* updated */, unsigned probe, unsigned radius_max, unsigned apart,
             unsigned own_chain)
{
    each_warp(header, ATOMS, [&](unsigned own) {
        const Atom atom = atoms[own];
        if (!present(atom))
            return;
        const Grid& grid = structure_of(structures, chains, atom.tag).atom_grid;
        const Cells cells = CELLS_OF_PARAMS;
        const Exposed points = EXPOSED_OF_PARAMS;
        const PointRange mine = points.of(own);
        const unsigned radius = tag_radius(atom.tag) + probe;
        const float near = float(int(apart));
        join_points<true>(points, mine, mine, 0.0f, 0.0f, 0.0f, 0.0f, near, parents);

        uint2* places = warp_memory<Places, WARPS>().of;
        const int reach = int(radius + radius_max + apart);
        each_candidate(cells, grid, atom, reach, places, [&](bool is_one, unsigned at) {
            float dx = 0.0f, dy = 0.0f, dz = 0.0f, other_radius = 0.0f;
            PointRange theirs{};
            const unsigned other = is_one ? cells.source[at] : own;
            if (is_one && other < own && (!own_chain || same_chain(cells.tag[at], atom.tag))) {
                dx = float(cells.x[at] - atom.x);
                dy = float(cells.y[at] - atom.y);
                dz = float(cells.z[at] - atom.z);
                const float d2 = square_of(dx, dy, dz);
                const unsigned both = radius + tag_radius(cells.tag[at]) + probe;
                if (d2 < square_of(float(int(both))))
                    join<true>(bodies, own, other);
                other_radius = float(int(tag_radius(cells.tag[at]) + probe + apart));
                if (d2 < square_of(float(int(both + apart))))
                    theirs = points.of(other);
            }
            unsigned found = __ballot_sync(~0u, !theirs.empty());
            for (found = mine.empty() ? 0 : found; found; found &= found - 1) {
                const int leader = __ffs(found) - 1;
                const PointRange others{__shfl_sync(~0u, theirs.begin, leader),
                                        __shfl_sync(~0u, theirs.end, leader)};
                join_points<false>(points, mine, others, __shfl_sync(~0u, dx, leader),
                                   __shfl_sync(~0u, dy, leader), __shfl_sync(~0u, dz, leader),
                                   __shfl_sync(~0u, other_radius, leader), near, parents);
            }
        });
    });
}
