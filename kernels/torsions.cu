#include "angles.cuh"
#include "work.cuh"

// Computes the torsions of the backbone in degrees, one thread per residue: phi of C(i-1), N, CA,
// C; psi of N, CA, C, N(i+1); omega of CA, C, N(i+1), CA(i+1). Null across a chain break, and if an
// atom is missing.
KERNEL(256)
torsions(const unsigned* header, const ResidueSpan* residues, const Backbone* backbone,
         float* angles)
{
    wait_for_dependencies();
    const unsigned count = header[RESIDUES];
    each_thread(header, RESIDUES, [&](unsigned residue) {
        const Backbone here = backbone[residue];
        float phi = null_real(), psi = null_real(), omega = null_real();
        const bool has_axes = present(here.ca) && present(here.c);
        if (has_axes && present(here.n) && linked(residues, count, residue)) {
            const Position c = backbone[residue - 1].c;
            if (present(c))
                phi = Angle::dihedral(c, here.n, here.ca, here.c).degrees();
        }
        if (has_axes && linked(residues, count, residue + 1)) {
            const Position n = backbone[residue + 1].n, ca = backbone[residue + 1].ca;
            if (present(here.n) && present(n))
                psi = Angle::dihedral(here.n, here.ca, here.c, n).degrees();
            if (present(n) && present(ca))
                omega = Angle::dihedral(here.ca, here.c, n, ca).degrees();
        }
        angles[3 * residue] = phi;
        angles[3 * residue + 1] = psi;
        angles[3 * residue + 2] = omega;
    });
}
