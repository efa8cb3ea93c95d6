#include "layout.cuh"

__device__ inline double dot(Position a, Position b)
{
    return double((long long)a.x * b.x + (long long)a.y * b.y + (long long)a.z * b.z);
}

__device__ inline Position minus(Atom a, Atom b)
{
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

// C-alphas within the cutoff on either side of the plane through the residue's
// C-alpha whose normal bisects the directions from its neighbours' C-alphas
// (Hamelryck 2005), first above, then below; one thread a residue. A residue that
// is not linked to both neighbours has no plane.
extern "C" __global__ void __launch_bounds__(TILE)
half_sphere_exposure(const unsigned* header, const Tile* tiles, const Residue* residues,
                     const Atom* atoms, int* counts, unsigned cutoff2)
{
    if (blockIdx.x >= header[TILES])
        return;
    const Tile tile = tiles[blockIdx.x];
    const bool active = threadIdx.x < tile.count;
    const unsigned i = tile.first + threadIdx.x;
    const unsigned own = tile.residue_start + i;
    const Atom atom = active ? atoms[own] : Atom{};

    Position before{}, after{};
    double before_norm = 0.0, after_norm = 0.0;
    if (active && present(atom) && i > 0 && i + 1 < tile.residue_count
        && residues[own].flags & LINKED && residues[own + 1].flags & LINKED
        && present(atoms[own - 1]) && present(atoms[own + 1])) {
        before = minus(atom, atoms[own - 1]);
        after = minus(atom, atoms[own + 1]);
        before_norm = sqrt(dot(before, before));
        after_norm = sqrt(dot(after, after));
    }
    const bool has_plane = before_norm > 0.0 && after_norm > 0.0;

    __shared__ Atom others[TILE];
    int above = 0, near = 0;
    for (unsigned base = 0; base < tile.residue_count; base += TILE) {
        const unsigned length = load_tile(others, atoms, tile, base);
        if (!has_plane)
            continue;
        for (unsigned k = 0; k < length; ++k) {
            const Position d = minus(others[k], atom);
            if (!present(others[k]) || squared(d.x, d.y, d.z) >= cutoff2)
                continue;
            // The sign of d on (before / |before| + after / |after|).
            above += dot(d, before) * after_norm + dot(d, after) * before_norm > 0.0;
            ++near;
        }
    }
    if (active) {
        counts[2 * own] = has_plane ? above : NULL_COUNT;
        // The residue itself is near, and not above.
        counts[2 * own + 1] = has_plane ? near - above - 1 : NULL_COUNT;
    }
}
