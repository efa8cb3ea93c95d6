#include "angles.cuh"
#include "work.cuh"

// Computes the shape of the C-alpha trace in degrees, one thread per residue: the dihedral of
// C-alphas i-1, i, i+1, i+2, and the angle of i-1, i, i+1. Null across a chain break, and if a
// C-alpha is missing.
KERNEL(256)
ca_geometry(const unsigned* header, const ResidueSpan* residues, const Atom* ca, float* angles)
{
    wait_for_dependencies();
    const unsigned count = header[RESIDUES];
    each_thread(header, RESIDUES, [&](unsigned residue) {
        float dihedral = null_real(), angle = null_real();
        if (linked(residues, count, residue) && linked(residues, count, residue + 1)) {
            const Atom before = ca[residue - 1], here = ca[residue], after = ca[residue + 1];
            if (present(before) && present(here) && present(after)) {
                const Position centre = position(here);
                angle = Angle::between(difference(position(before), centre),
                                       difference(position(after), centre)).degrees();
                if (linked(residues, count, residue + 2) && present(ca[residue + 2]))
                    dihedral = Angle::dihedral(position(before), centre, position(after),
                                               position(ca[residue + 2])).degrees();
            }
        }
        angles[2 * residue] = dihedral;
        angles[2 * residue + 1] = angle;
    });
}
