#include "vector.cuh"
#include "work.cuh"

// Computes the direction of each residue's upper half sphere, from C-alpha to C-beta, one thread
// per residue. For glycine, C-beta is N rotated by -120 degrees about the axis from C-alpha to C
// (Hamelryck 2005, as in Biopython). x is NaN without a C-beta.
KERNEL(256)
half_sphere_normal_b(const unsigned* header, const ResidueSpan* residues, const Backbone* backbones,
                     const Atom* betas, double* normals)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        double* normal = normals + 3 * residue;
        normal[0] = null_double();
        if (!(residues[residue].flags & PRESENT))
            return;
        const Backbone& backbone = backbones[residue];
        const Atom beta = betas[residue];
        if (!present(backbone.ca))
            return;
        Vector up{};
        if (residues[residue].aa != 'G') {
            // A C-beta that the file has is of a side chain; a built one is not.
            if (present(beta) && tag_side(beta.tag))
                up = difference(position(beta), backbone.ca);
        } else if (present(backbone.n) && present(backbone.c)) {
            const Vector n = difference(backbone.n, backbone.ca), axis = difference(backbone.c, backbone.ca);
            const double square = dot(axis, axis);
            const double across = -0.8660254037844386 / sqrt(square);
            const double along = 1.5 * dot(axis, n) / square;
            if (square > 0.0) {
                const Vector turn = cross(axis, n);
                up = {-0.5 * n.x + across * turn.x + along * axis.x,
                      -0.5 * n.y + across * turn.y + along * axis.y,
                      -0.5 * n.z + across * turn.z + along * axis.z};
            }
        }
        if (dot(up, up) > 0.0) {
            normal[0] = up.x;
            normal[1] = up.y;
            normal[2] = up.z;
        }
    });
}
