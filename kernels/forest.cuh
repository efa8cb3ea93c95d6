// Trees of residues, atoms or points, one for each connected component. A node's parent has a lower
// index; the root is the first node of its tree and its own parent.
#pragma once

// The parent of a residue that is in no tree.
constexpr unsigned NO_TREE = ~0u;

// The root of a node's tree, while other threads join trees.
__device__ inline unsigned root_of(const volatile unsigned* parents, unsigned node)
{
    unsigned parent = parents[node];
    while (parent != node) {
        node = parent;
        parent = parents[node];
    }
    return node;
}

// The root of a node's tree, like root_of. Halves the path to the root on the way: nodes get their
// grandparents as parents. Trees of thousands of nodes need it.
__device__ inline unsigned root_shortening(volatile unsigned* parents, unsigned node)
{
    unsigned parent = parents[node];
    while (parent != node) {
        const unsigned above = parents[parent];
        // A node with a parent is no root and never becomes one, so `join` does not change it.
        if (above != parent)
            parents[node] = above;
        node = parent;
        parent = above;
    }
    return node;
}

// Joins the trees of two nodes. With SHORTEN root_shortening finds the roots, otherwise root_of.
template <bool SHORTEN = false>
__device__ inline void join(unsigned* parents, unsigned a, unsigned b)
{
    const auto root = [&](unsigned node) {
        return SHORTEN ? root_shortening(parents, node) : root_of(parents, node);
    };
    a = root(a);
    b = root(b);
    while (a != b) {
        const unsigned first = min(a, b), last = max(a, b);
        const unsigned parent = atomicCAS(&parents[last], last, first);
        if (parent == last)
            return;
        // Another thread changed the parent first.
        a = first;
        b = root(parent);
    }
}
