#include "vector.cuh"
#include "work.cuh"

// Computes the direction of each residue's upper half sphere, one thread per residue: the sum of
// the unit vectors from the neighbouring C-alphas to its own, times the product of the lengths. x
// is NaN for a residue that is not linked to both neighbours.
KERNEL(256)
half_sphere_normal_a(const unsigned* header, const StructureSpan* structures,
                     const ResidueSpan* residues, const Atom* atoms, double* normals)
{
    each_thread(header, RESIDUES, [&](unsigned own) {
        double* normal = normals + 3 * own;
        normal[0] = null_double();
        const StructureSpan& structure = structures[residues[own].structure];
        const unsigned start = structure.residue_start, end = start + structure.residue_count;
        if (own <= start || own + 1 >= end || !(residues[own].flags & LINKED)
            || !(residues[own + 1].flags & LINKED) || !present(atoms[own - 1])
            || !present(atoms[own]) || !present(atoms[own + 1]))
            return;
        const Vector before = difference(position(atoms[own]), position(atoms[own - 1]));
        const Vector after = difference(position(atoms[own]), position(atoms[own + 1]));
        const double before_norm = sqrt(dot(before, before)), after_norm = sqrt(dot(after, after));
        if (before_norm > 0.0 && after_norm > 0.0) {
            normal[0] = before.x * after_norm + after.x * before_norm;
            normal[1] = before.y * after_norm + after.y * before_norm;
            normal[2] = before.z * after_norm + after.z * before_norm;
        }
    });
}
