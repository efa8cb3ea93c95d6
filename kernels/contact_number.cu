#include "layout.cuh"

// Other residues of the structure within the cutoff; one thread a residue.
extern "C" __global__ void __launch_bounds__(TILE)
contact_number(const unsigned* header, const Tile* tiles, const Position* positions,
               int* counts, unsigned cutoff2)
{
    if (blockIdx.x >= header[TILES])
        return;
    const Tile tile = tiles[blockIdx.x];
    const bool active = threadIdx.x < tile.count;
    const unsigned own = tile.residue_start + tile.first + threadIdx.x;
    const Position position = active ? positions[own] : Position{MISSING, MISSING, MISSING};

    __shared__ Position others[TILE];
    int count = 0;
    for (unsigned base = 0; base < tile.residue_count; base += TILE) {
        const unsigned length = load_tile(others, positions, tile, base);
        for (unsigned k = 0; k < length; ++k)
            count += within(position, others[k], cutoff2);
    }
    // The residue itself is at distance 0.
    if (active)
        counts[own] = present(position) ? count - 1 : NULL_COUNT;
}
