// Trees of residues, one a cluster: a residue's parent comes before it, and a root, the first of
// its tree, is its own.
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

// Makes the trees of two residues one.
__device__ inline void join(unsigned* parents, unsigned a, unsigned b)
{
    a = root_of(parents, a);
    b = root_of(parents, b);
    while (a != b) {
        const unsigned first = min(a, b), last = max(a, b);
        const unsigned parent = atomicCAS(&parents[last], last, first);
        if (parent == last)
            return;
        // Another thread was there before.
        a = first;
        b = root_of(parents, parent);
    }
}
