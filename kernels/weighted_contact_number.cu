#include "layout.cuh"

// Terms that are added in single precision before they go into the double sum:
// few enough that the rounding stays below 2e-6 of the sum.
constexpr unsigned GROUP = 32;
static_assert(TILE % GROUP == 0, "groups start at the same residues in every tile");

// Sum of 1/d^2 over the other residues of the structure, in 1/A^2; one thread a
// residue. Residues at distance 0 are skipped.
extern "C" __global__ void __launch_bounds__(TILE)
weighted_contact_number(const unsigned* header, const Tile* tiles, const Atom* atoms,
                        float* sums)
{
    if (blockIdx.x >= header[TILES])
        return;
    const Tile tile = tiles[blockIdx.x];
    const bool active = threadIdx.x < tile.count;
    const unsigned own = tile.residue_start + tile.first + threadIdx.x;
    const Atom atom = active ? atoms[own] : Atom{};

    __shared__ Atom others[TILE];
    double sum = 0.0;
    for (unsigned base = 0; base < tile.residue_count; base += TILE) {
        const unsigned length = load_tile(others, atoms, tile, base);
        for (unsigned group = 0; group < length; group += GROUP) {
            float partial = 0.0f;
            for (unsigned k = group; k < min(group + GROUP, length); ++k) {
                const Atom other = others[k];
                const float x = float(atom.x - other.x);
                const float y = float(atom.y - other.y);
                const float z = float(atom.z - other.z);
                const float d2 = x * x + y * y + z * z;
                if (d2 > 0.0f && present(other))
                    partial += 1e6f / d2;
            }
            sum += double(partial);
        }
    }
    if (active)
        sums[own] = present(atom) ? float(sum) : null_real();
}
