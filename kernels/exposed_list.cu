#include "exposed.cuh"
#include "work.cuh"

// Lists the exposed points of each atom, and makes each point and each atom a tree of its own; one
// warp per atom. The header has the test points from index `first` on. Only the twin reads
// `structures`: its threads take a structure each.
KERNEL(32 * WARPS)
exposed_list(const unsigned* header, const StructureSpan* structures, const Atom* atoms,
             const unsigned* bits, const unsigned* starts, const unsigned* counts, float* x,
             float* y, float* z, unsigned* parents, unsigned* bodies, unsigned words,
             unsigned first, unsigned points, unsigned probe)
{
    wait_for_dependencies();
    const float* sphere = (const float*)header + first;
    each_warp(header, ATOMS, [&](unsigned atom_index) {
        const AtomTag tag = atoms[atom_index].tag;
        if (tag == 0)
            return;
        if (lane() == 0)
            bodies[atom_index] = atom_index;
        if (counts[atom_index] == 0)
            return;
        const float radius = float(int(tag_radius(tag) + probe));
        unsigned word = lane() < words ? bits[atom_index * words + lane()] : 0;
        unsigned place = starts[atom_index] + warp_scan(__popc(word)) - __popc(word);
        for (; word; word &= word - 1, ++place) {
            const unsigned point = 32 * lane() + __ffs(word) - 1;
            x[place] = radius * sphere[point];
            y[place] = radius * sphere[points + point];
            z[place] = radius * sphere[2 * points + point];
            parents[place] = place;
        }
    });
}
