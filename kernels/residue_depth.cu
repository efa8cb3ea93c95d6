#include "exposed.cuh"
#include "work.cuh"

// The search for the nearest point of the outer surface, with a warp.
struct NearestPoint {
    const Cells& cells;
    const Exposed& points;
    const StructureSpan& structure;
    const Atom* atoms;
    unsigned probe, radius_max, own_chain;
    uint2* places;

    // The squared distance of an atom from the nearest point in 0.001 A; infinite if there is none.
    // It looks among the points of atoms within `reach` first.
    __device__ inline float squared_from(Atom atom, unsigned reach) const
    {
        float least = __int_as_float(0x7f800000);
        if (are_empty(cells, structure.atom_grid))
            return least;
        for (;;) {
            each_candidate(cells, structure.atom_grid, atom, int(reach), places,
                           [&](bool has_atom, unsigned sorted) {
                               Atom other{};
                               if (has_atom)
                                   other = {cells.x[sorted], cells.y[sorted], cells.z[sorted],
                                            cells.tag[sorted]};
                               update(atom, other, has_atom ? cells.source[sorted] : 0, least);
                           });
            // Points that are nearer belong to atoms within this distance.
            const float needed = sqrtf(least) + float(int(radius_max)) + 1.0f;
            if (needed <= float(int(reach)))
                return least;
            if (reach == REACH)
                break;
            reach = needed < float(REACH) ? unsigned(needed) + 1 : min(2 * reach, unsigned(REACH));
        }
        // The nearest point is farther than a search in cells reaches, so all atoms are tested.
        for (unsigned step = 0; step < structure.atom_count; step += 32) {
            const unsigned other = structure.atom_start + step + lane();
            const bool has_atom = step + lane() < structure.atom_count;
            update(atom, has_atom ? atoms[other] : Atom{}, has_atom ? other : 0, least);
        }
        return least;
    }

private:
    // Lowers `least` to the squared distance of the nearest point of atom `other`, a different atom
    // in each lane; lanes may have absent atoms.
    __device__ inline void update(Atom from, Atom other, unsigned source, float& least) const
    {
        PointRange range{};
        if (present(other) && (!own_chain || same_chain(other.tag, from.tag)))
            range = points.range_of(source);
        const float dx = float(other.x - from.x), dy = float(other.y - from.y),
                    dz = float(other.z - from.z);
        const float d2 = square_of(dx, dy, dz);
        const float radius = float(int(tag_radius(other.tag) + probe));
        unsigned found = __ballot_sync(~0u, !range.empty());
        for (; found; found &= found - 1) {
            const int leader = __ffs(found) - 1;
            // One more than the rounding errors.
            const float farthest = sqrtf(least) + __shfl_sync(~0u, radius, leader) + 1.0f;
            if (__shfl_sync(~0u, d2, leader) >= square_of(farthest))
                continue;
            const unsigned end = __shfl_sync(~0u, range.end, leader);
            const float to_x = __shfl_sync(~0u, dx, leader), to_y = __shfl_sync(~0u, dy, leader),
                        to_z = __shfl_sync(~0u, dz, leader);
            float nearest = least;
            const unsigned begin = __shfl_sync(~0u, range.begin, leader);
            for (unsigned point = begin + lane(); point < end; point += 32)
                nearest = fminf(nearest, square_of(points.x[point] + to_x, points.y[point] + to_y,
                                                   points.z[point] + to_z));
            // Floats that are not negative are in the order of their bits.
            least = __int_as_float(warp_min(__float_as_int(nearest)));
        }
    }
};

// Computes the mean depth of each residue's atoms and that of its C-alpha in A, one warp per residue:
// the distance from the nearest point of the outer surface, less the probe. The points are those
// that outer_surface left.
KERNEL(32 * WARPS)
residue_depth(const unsigned* header, const StructureSpan* structures,
              const ResidueSpan* residues, const Atom* atoms, const Atom* ca, CELL_PARAMS,
              POINT_PARAMS, float* depths, unsigned probe, unsigned radius_max, unsigned reach,
              unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const Cells cells = CELLS_OF_PARAMS;
        const Exposed points = EXPOSED_OF_PARAMS;
        const NearestPoint nearest{cells, points,     structures[residue.structure],
                                   atoms, probe,      radius_max,
                                   own_chain, warp_memory<Places, WARPS>().scratch};
        const Atom alpha = ca[row];
        double sum = 0.0;
        float alpha_depth = null_real();
        for (unsigned a = 0; a < residue.atom_count; ++a) {
            const unsigned source = residue.atom_start + a;
            const Atom atom = atoms[source];
            // The nearest points of an atom that has any are its own, at its radius.
            const double distance = points.count[source] > 0
                ? double(tag_radius(atom.tag) + probe)
                : sqrt(double(nearest.squared_from(atom, reach)));
            const double depth = (distance - double(probe)) * 0.001;
            sum += depth;
            if (present(alpha) && alpha.x == atom.x && alpha.y == atom.y && alpha.z == atom.z)
                alpha_depth = float(depth);
        }
        if (lane() == 0) {
            const double mean = sum / double(residue.atom_count);
            // Infinite where there is no surface.
            const bool is_finite = residue.atom_count > 0 && mean < 1e30;
            depths[2 * row] = is_finite ? float(mean) : null_real();
            depths[2 * row + 1] = is_finite ? alpha_depth : null_real();
        }
    });
}
