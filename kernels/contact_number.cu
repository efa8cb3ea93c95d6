#include "layout.cuh"

// Other residues of the structure within the cutoff; one thread a residue.
extern "C" __global__ void __launch_bounds__(TILE)
contact_number(const unsigned* header, const Tile* tiles, const Atom* atoms, int* counts,
               unsigned cutoff2)
{
    if (blockIdx.x >= header[TILES])
        return;
    const Tile tile = tiles[blockIdx.x];
    const bool active = threadIdx.x < tile.count;
    const unsigned own = tile.residue_start + tile.first + threadIdx.x;
    const Atom atom = active ? atoms[own] : Atom{};

    __shared__ Atom others[TILE];
    int count = 0;
    for (unsigned base = 0; base < tile.residue_count; base += TILE) {
        const unsigned length = load_tile(others, atoms, tile, base);
        for (unsigned k = 0; k < length; ++k)
            count += present(others[k])
                && squared(atom.x - others[k].x, atom.y - others[k].y, atom.z - others[k].z) < cutoff2;
    }
    // The residue itself is at distance 0.
    if (active)
        counts[own] = present(atom) ? count - 1 : NULL_COUNT;
}
