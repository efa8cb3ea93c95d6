#include "layout.cuh"

__device__ inline double dot(Position a, Position b)
{
    return double((long long)a.x * b.x + (long long)a.y * b.y + (long long)a.z * b.z);
}

__device__ inline Position minus(Position a, Position b)
{
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}

// C-alphas within the cutoff on either side of the plane through the residue's
// C-alpha whose normal bisects the directions from its neighbours' C-alphas
// (Hamelryck 2005); one thread a residue. links[i] is 1 where residue i is
// linked to residue i - 1; without both links the residue has no plane.
extern "C" __global__ void __launch_bounds__(TILE)
half_sphere_exposure(const unsigned* header, const Tile* tiles, const Position* positions,
                     const unsigned char* links, int* up, int* down, unsigned cutoff2)
{
    if (blockIdx.x >= header[TILES])
        return;
    const Tile tile = tiles[blockIdx.x];
    const bool active = threadIdx.x < tile.count;
    const unsigned i = tile.first + threadIdx.x;
    const unsigned own = tile.residue_start + i;
    const Position position = active ? positions[own] : Position{MISSING, MISSING, MISSING};

    Position before{}, after{};
    double before_norm = 0.0, after_norm = 0.0;
    if (active && present(position) && i > 0 && i + 1 < tile.residue_count && links[own]
        && links[own + 1] && present(positions[own - 1]) && present(positions[own + 1])) {
        before = minus(position, positions[own - 1]);
        after = minus(position, positions[own + 1]);
        before_norm = sqrt(dot(before, before));
        after_norm = sqrt(dot(after, after));
    }
    const bool has_plane = before_norm > 0.0 && after_norm > 0.0;

    __shared__ Position others[TILE];
    int above = 0, near = 0;
    for (unsigned base = 0; base < tile.residue_count; base += TILE) {
        const unsigned length = load_tile(others, positions, tile, base);
        if (!has_plane)
            continue;
        for (unsigned k = 0; k < length; ++k) {
            if (!within(position, others[k], cutoff2))
                continue;
            const Position d = minus(others[k], position);
            // The sign of d on (before / |before| + after / |after|).
            above += dot(d, before) * after_norm + dot(d, after) * before_norm > 0.0;
            ++near;
        }
    }
    if (active) {
        up[own] = has_plane ? above : NULL_COUNT;
        // The residue itself is near, and not above.
        down[own] = has_plane ? near - above - 1 : NULL_COUNT;
    }
}
