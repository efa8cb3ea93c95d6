#include "vector.cuh"
#include "work.cuh"

// Computes the direction of each residue's upper half sphere, one thread per residue: the sum of
// the unit vectors from the neighbouring C-alphas to its own, times the product of the lengths. x
// is NaN for a residue that is not linked to both neighbours.
KERNEL(256)
half_sphere_normal_a(const unsigned* header, const StructureSpan* structures,
                     const ResidueSpan* residues, const Atom* atoms, double* normals)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        double* normal = normals + 3 * residue;
        normal[0] = null_double();
        const StructureSpan& structure = structures[residues[residue].structure];
        const unsigned start = structure.residue_start, end = start + structure.residue_count;
        if (residue <= start || residue + 1 >= end || !(residues[residue].flags & LINKED)
            || !(residues[residue + 1].flags & LINKED) || !present(atoms[residue - 1])
            || !present(atoms[residue]) || !present(atoms[residue + 1]))
            return;
        const Vector before = difference(position(atoms[residue]), position(atoms[residue - 1]));
        const Vector after = difference(position(atoms[residue]), position(atoms[residue + 1]));
        const double before_norm = sqrt(dot(before, before)), after_norm = sqrt(dot(after, after));
        if (before_norm > 0.0 && after_norm > 0.0) {
            normal[0] = before.x * after_norm + after.x * before_norm;
            normal[1] = before.y * after_norm + after.y * before_norm;
            normal[2] = before.z * after_norm + after.z * before_norm;
        }
    });
}
