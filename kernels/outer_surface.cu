#include "exposed.cuh"
#include "work.cuh"

// Marks the exposed points that are not of the outer surface of their body, which is the tree of
// points that has the one with the largest x; one warp per atom. Their x becomes NOT_OUTER; atoms
// that have no others have no points any more. Only the twin reads `structures`, whose threads share
// them out.
KERNEL(32 * WARPS)
outer_surface(const unsigned* header, const StructureSpan* structures, const Atom* atoms,
              const unsigned* starts, unsigned* counts /* updated */, float* x /* updated */,
              unsigned* parents /* updated */, unsigned* bodies /* updated */,
              const unsigned* ends)
{
    each_warp(header, ATOMS, [&](unsigned own) {
        if (!present(atoms[own]) || counts[own] == 0)
            return;
        const unsigned begin = starts[own], end = begin + counts[own];
        const unsigned last = ~ends[2 * root_shortening(bodies, own)];
        const unsigned outer = root_shortening(parents, last);
        bool any = false;
        for (unsigned at = begin + lane(); at < end; at += 32) {
            const bool is_outer = root_shortening(parents, at) == outer;
            if (!is_outer)
                x[at] = NOT_OUTER;
            any |= is_outer;
        }
        if (!__any_sync(~0u, any) && lane() == 0)
            counts[own] = 0;
    });
}
