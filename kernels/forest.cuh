// Trees of residues, one for each cluster. A residue's parent has a lower index; the root is the
// first residue of its tree and its own parent.
#pragma once

// The parent of a residue that is in no tree.
constexpr unsigned NO_TREE = ~0u;

// The root of a residue's tree, while other threads join trees.
__device__ inline unsigned root_of(const volatile unsigned* parents, unsigned residue)
{
    unsigned parent = parents[residue];
    while (parent != residue) {
        residue = parent;
        parent = parents[residue];
    }
    return residue;
}

// Joins the trees of two residues.
__device__ inline void join(unsigned* parents, unsigned a, unsigned b)
{
    a = root_of(parents, a);
    b = root_of(parents, b);
    while (a != b) {
        const unsigned first = min(a, b), last = max(a, b);
        const unsigned parent = atomicCAS(&parents[last], last, first);
        if (parent == last)
            return;
        // Another thread changed the parent first.
        a = first;
        b = root_of(parents, parent);
    }
}
