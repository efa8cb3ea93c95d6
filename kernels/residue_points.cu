#include "limits.cuh"
#include "work.cuh"

// The coordinate of an ideal C-beta along an axis; see src/features/residue_points.rs.
__device__ inline long long ideal_coordinate(double a, double b, double c, int ca)
{
    const double angstrom = -0.58273431 * a + 0.56802827 * b - 0.54067466 * c;
    return ca + (long long)round(angstrom * 1000.0);
}

// The ideal C-beta of a backbone; MISSING if an atom is, or if the C-beta is out of bounds.
__device__ inline Position ideal_c_beta(const Backbone& backbone)
{
    constexpr Position NONE = {MISSING, MISSING, MISSING};
    if (!present(backbone.n) || !present(backbone.ca) || !present(backbone.c))
        return NONE;
    const Position n = backbone.n, ca = backbone.ca, c = backbone.c;
    const double bx = (ca.x - n.x) / 1000.0, by = (ca.y - n.y) / 1000.0, bz = (ca.z - n.z) / 1000.0;
    const double cx = (c.x - ca.x) / 1000.0, cy = (c.y - ca.y) / 1000.0, cz = (c.z - ca.z) / 1000.0;
    const double ax = by * cz - bz * cy, ay = bz * cx - bx * cz, az = bx * cy - by * cx;
    const long long x = ideal_coordinate(ax, bx, cx, ca.x);
    const long long y = ideal_coordinate(ay, by, cy, ca.y);
    const long long z = ideal_coordinate(az, bz, cz, ca.z);
    if (max(max(llabs(x), llabs(y)), llabs(z)) > COORDINATE_MAX)
        return NONE;
    return {int(x), int(y), int(z)};
}

// Makes atoms of each residue's C-alpha and C-beta, one thread per residue. `betas` are the C-betas
// of the file. Where one is missing, an ideal C-beta takes its place, whose tag is not that of a
// side chain.
KERNEL(256)
residue_points(const unsigned* header, const ResidueSpan* residues, const Backbone* backbone,
               const Position* betas, Atom* ca, Atom* cb)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        Atom alpha = {}, beta = {};
        if (residue.flags & PRESENT) {
            const Backbone atoms = backbone[row];
            const AtomTag tag = RADIUS_MAX | residue.chain << 13;
            if (present(atoms.ca))
                alpha = {atoms.ca.x, atoms.ca.y, atoms.ca.z, tag};
            Position position = betas[row];
            const bool is_of_file = present(position);
            if (!is_of_file)
                position = ideal_c_beta(atoms);
            if (present(position))
                beta = {position.x, position.y, position.z, tag | (is_of_file ? TAG_SIDE : 0u)};
        }
        ca[row] = alpha;
        cb[row] = beta;
    });
}
