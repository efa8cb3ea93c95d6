#include "exposed.cuh"
#include "work.cuh"

// Joins the trees of exposed points that are closer than `apart`: the points `firsts` of an atom
// with each other if IS_ONE_ATOM, else with the points `seconds` of another atom. That atom is at d
// from the first; `radius` is its radius with the probe, plus `apart`. Points of two atoms are
// joined only if the line from one to the other leaves both spheres at once, which it does not
// between the two sides of a thin wall.
template <bool IS_ONE_ATOM>
__device__ inline void join_points(const Exposed& points, PointRange firsts, PointRange seconds,
                                   float dx, float dy, float dz, float radius, float apart,
                                   unsigned* parents)
{
    for (unsigned base = firsts.begin; base < firsts.end; base += 32) {
        const unsigned candidate = base + lane();
        bool is_near = candidate < firsts.end;
        if (!IS_ONE_ATOM && is_near)
            is_near = square_of(points.x[candidate] - dx, points.y[candidate] - dy,
                                points.z[candidate] - dz)
                < square_of(radius);
        for (unsigned found = __ballot_sync(~0u, is_near); found; found &= found - 1) {
            const unsigned point = base + __ffs(found) - 1;
            const unsigned end = IS_ONE_ATOM ? point : seconds.end;
            const float from_x = points.x[point], from_y = points.y[point],
                        from_z = points.z[point];
            for (unsigned other = seconds.begin + lane(); other < end; other += 32) {
                const float to_x = points.x[other], to_y = points.y[other],
                            to_z = points.z[other];
                const float x = to_x - (from_x - dx), y = to_y - (from_y - dy),
                            z = to_z - (from_z - dz);
                const bool leaves_both = IS_ONE_ATOM
                    || (x * from_x + y * from_y + z * from_z >= 0.0f
                        && x * to_x + y * to_y + z * to_z <= 0.0f);
                if (square_of(x, y, z) < square_of(apart) && leaves_both)
                    join<true>(parents, point, other);
            }
            __syncwarp();
        }
    }
}

// Joins the trees of exposed points that are near each other, and the trees of atoms whose spheres
// overlap, of all chains or of the atom's chain; one warp per atom.
KERNEL(32 * WARPS)
join_surface(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
             const Atom* atoms, CELL_PARAMS, POINT_PARAMS, unsigned* parents /* updated */,
             unsigned* bodies /* updated */, unsigned probe, unsigned radius_max, unsigned apart,
             unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, ATOMS, [&](unsigned atom_index) {
        const Atom atom = atoms[atom_index];
        if (!present(atom))
            return;
        const Grid& grid = structure_of(structures, chains, atom.tag).atom_grid;
        const Cells cells = CELLS_OF_PARAMS;
        const Exposed points = EXPOSED_OF_PARAMS;
        const PointRange mine = points.range_of(atom_index);
        const unsigned radius = tag_radius(atom.tag) + probe;
        const float near = float(int(apart));
        join_points<true>(points, mine, mine, 0.0f, 0.0f, 0.0f, 0.0f, near, parents);

        uint2* places = warp_memory<Places, WARPS>().scratch;
        const int reach = int(radius + radius_max + apart);
        each_candidate(cells, grid, atom, reach, places, [&](bool has_atom, unsigned sorted) {
            float dx = 0.0f, dy = 0.0f, dz = 0.0f, other_radius = 0.0f;
            PointRange theirs{};
            const unsigned other = has_atom ? cells.source[sorted] : atom_index;
            if (has_atom && other < atom_index
                && (!own_chain || same_chain(cells.tag[sorted], atom.tag))) {
                dx = float(cells.x[sorted] - atom.x);
                dy = float(cells.y[sorted] - atom.y);
                dz = float(cells.z[sorted] - atom.z);
                const float d2 = square_of(dx, dy, dz);
                const unsigned both = radius + tag_radius(cells.tag[sorted]) + probe;
                if (d2 < square_of(float(int(both))))
                    join<true>(bodies, atom_index, other);
                other_radius = float(int(tag_radius(cells.tag[sorted]) + probe + apart));
                if (d2 < square_of(float(int(both + apart))))
                    theirs = points.range_of(other);
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
