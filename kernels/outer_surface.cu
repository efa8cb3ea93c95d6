#include "exposed.cuh"
#include "work.cuh"

// Sets the x of exposed points that are not on the outer surface of their body to NOT_OUTER; one
// warp per atom. The outer surface is the tree of points that has the body's point with the largest
// x. An atom without a point on it loses all its points. Only the twin reads `structures`: its
// threads take a structure each.
KERNEL(32 * WARPS)
outer_surface(const unsigned* header, const StructureSpan* structures, const Atom* atoms,
              const unsigned* starts, unsigned* counts /* updated */, float* x /* updated */,
              unsigned* parents /* updated */, unsigned* bodies /* updated */,
              const unsigned* ends)
{
    wait_for_dependencies();
    each_warp(header, ATOMS, [&](unsigned atom_index) {
        if (!present(atoms[atom_index]) || counts[atom_index] == 0)
            return;
        const unsigned begin = starts[atom_index], end = begin + counts[atom_index];
        const unsigned last = ~ends[2 * root_shortening(bodies, atom_index)];
        const unsigned outer = root_shortening(parents, last);
        bool any = false;
        for (unsigned point = begin + lane(); point < end; point += 32) {
            const bool is_outer = root_shortening(parents, point) == outer;
            if (!is_outer)
                x[point] = NOT_OUTER;
            any |= is_outer;
        }
        if (!__any_sync(~0u, any) && lane() == 0)
            counts[atom_index] = 0;
    });
}
