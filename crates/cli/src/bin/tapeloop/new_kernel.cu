// A column of the table of residues: how many C-alphas are within a radius of the residue's own.
//
// The parameters say by their names what they take: tapeloop's docs/config/kernels.md lists them.
// Columns are what the kernel writes: float* or int*. Positions are in 0.001 A.
#include "tapeloop.cuh"

extern "C" __global__ void neighbours(const unsigned* header, const StructureSpan* structures,
                                      const ResidueSpan* residues, const Atom* ca, int radius,
                                      int* neighbours)
{
    // There are more threads than residues.
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= header[RESIDUES] || !present(ca[own]))
        return; // The column is null here.
    const StructureSpan& structure = structures[residues[own].structure];
    int count = 0;
    for (unsigned i = 0; i < structure.residue_count; i++) {
        const unsigned other = structure.residue_start + i;
        if (other == own || !present(ca[other]))
            continue;
        const int dx = ca[other].x - ca[own].x;
        const int dy = ca[other].y - ca[own].y;
        const int dz = ca[other].z - ca[own].z;
        count += squared(dx, dy, dz) < unsigned(radius) * unsigned(radius);
    }
    neighbours[own] = count;
}
