#include "work.cuh"

// Adds a length to the depths of residues, [residues, 2] in A; nulls stay. One thread per residue.
KERNEL(256)
raise_depths(const unsigned* header, float* depths /* updated */, unsigned milli_angstrom)
{
    wait_for_dependencies();
    const double length = double(milli_angstrom) * 0.001;
    each_thread(header, RESIDUES, [&](unsigned row) {
        for (unsigned kind = 0; kind < 2; ++kind) {
            float& depth = depths[2 * row + kind];
            if (!isnan(depth))
                depth = float(double(depth) + length);
        }
    });
}
