// The interactions of an atom with later atoms of its structure, with a warp. Atoms that stand for a
// charged group or for an aromatic ring have the interactions of its centre.
#pragma once
#include "angles.cuh"
#include "gather.cuh"
#include "pair_rows.cuh"

// What an atom can be in an interaction, as in crates/structure/src/chemistry/mod.rs.
constexpr unsigned ROLE_DONOR = 1, ROLE_ACCEPTOR = 2, ROLE_HYDROPHOBIC = 4, ROLE_THIOL = 8;
constexpr unsigned ROLE_METAL = 16, ROLE_COORDINATES = 32, ROLE_POSITIVE = 64, ROLE_NEGATIVE = 128;
constexpr unsigned ROLE_RING = 256;

// The kinds, in the order of INTERACTION_KINDS in src/features/interactions/mod.rs.
constexpr unsigned HYDROGEN_BOND = 0, SALT_BRIDGE = 1, DISULFIDE = 2, PI_FACE = 3, PI_EDGE = 4;
constexpr unsigned CATION_PI = 5, HYDROPHOBIC_CONTACT = 6, METAL_BOND = 7;
// What follows the largest distance of each kind among the constants: the largest offset of rings,
// the largest distance of a hydrogen and its acceptor, how far the search of an atom goes, and that of
// one that stands for a group; and a bit for each kind that is listed.
constexpr unsigned RING_OFFSET = 8, HYDROGEN_REACH = 9, ATOM_REACH = 10, GROUP_REACH = 11;
constexpr unsigned LISTED_KINDS = 12;

// Nearer atoms are bonded, in 0.001 A.
constexpr unsigned BONDED = 2000;
// The distance of a hydrogen from its donor, in 0.001 A.
constexpr unsigned HYDROGEN_BOND_LENGTH = 1000;
// The planes of stacked rings are at less than PI_FACE_MAX or at more than PI_EDGE_MIN degrees.
constexpr unsigned PI_FACE_MAX = 30, PI_EDGE_MIN = 60;

// The kind of a pair of atoms or of groups that is none.
constexpr unsigned NO_INTERACTION = ~0u;

// What the kernels need of all atoms.
struct InteractionInputs {
    const Atom* atoms;
    const AtomRoles* roles;
    const AtomFrame* frames;
    // The constants: the largest distances by kind, then the others, all in 0.001 A.
    const unsigned* limits;
};

// One of the two atoms of a pair.
struct Site {
    Position position;
    AtomRoles roles;

    __device__ inline bool has(unsigned role) const { return roles.roles & role; }
};

struct Interaction {
    unsigned kind;
    float distance, angle;
};

// Whether two sites have these roles, in either order.
__device__ inline bool are(const Site& a, const Site& b, unsigned one, unsigned other)
{
    return (a.has(one) && b.has(other)) || (a.has(other) && b.has(one));
}

// The distance in A whose square is `square`, in (0.001 A)^2.
__device__ inline float in_angstrom(double square) { return float(sqrt(square) / 1000.0); }

// An angle as that of two lines, from 0 to 90 degrees.
__device__ inline float of_lines(float degrees)
{
    return degrees > 90.0f ? 180.0f - degrees : degrees;
}

__device__ inline Vector direction_of(const AtomFrame& frame)
{
    return {double(frame.direction[0]), double(frame.direction[1]), double(frame.direction[2])};
}

__device__ inline Position centre_of(const Site& site, const AtomFrame& frame)
{
    return {site.position.x + frame.centre[0], site.position.y + frame.centre[1],
            site.position.z + frame.centre[2]};
}

// The angle at the hydrogen of a bond in degrees, null if the donor has no direction; negative if there
// is no bond. The hydrogen is where it comes nearest to the acceptor: along the donor's direction if
// two atoms are bonded to the donor, and on the cone of a tetrahedral atom if one is. `to_acceptor` is
// from the donor.
__device__ inline float hydrogen_angle(const InteractionInputs& inputs, const AtomFrame& donor,
                                       const AtomFrame& acceptor, Vector to_acceptor)
{
    // The atoms that are bonded to the acceptor are on its far side.
    if (dot(direction_of(acceptor), to_acceptor) > 0.0)
        return -1.0f;
    const Vector direction = direction_of(donor);
    const double square = dot(to_acceptor, to_acceptor), length = dot(direction, direction);
    const double distance = sqrt(square);
    double cosine = 1.0;
    if (length > 0.0) {
        const double along = fmin(dot(direction, to_acceptor) / sqrt(length * square), 1.0);
        const double beside = sqrt(fmax(1.0 - along * along, 0.0));
        cosine = donor.direction[3] ? along : along * (1.0 / 3.0) + beside * 0.9428090415820634;
    }
    const double bond = HYDROGEN_BOND_LENGTH, reach = inputs.limits[HYDROGEN_REACH];
    const double apart = square + bond * bond - 2.0 * bond * distance * cosine;
    if (apart >= reach * reach || distance * cosine <= bond)
        return -1.0f;
    if (!(length > 0.0))
        return null_real();
    const double sine = sqrt(fmax(1.0 - cosine * cosine, 0.0));
    return Angle{distance * sine, bond - distance * cosine}.degrees();
}

// The interaction of two atoms themselves.
__device__ inline Interaction of_atoms(const InteractionInputs& inputs, unsigned a_index, const Site& a,
                                       unsigned b_index, const Site& b)
{
    unsigned kind = NO_INTERACTION;
    if (a.has(ROLE_HYDROPHOBIC) && b.has(ROLE_HYDROPHOBIC))
        kind = HYDROPHOBIC_CONTACT;
    else if (are(a, b, ROLE_DONOR, ROLE_ACCEPTOR))
        kind = HYDROGEN_BOND;
    else if (a.has(ROLE_THIOL) && b.has(ROLE_THIOL))
        kind = DISULFIDE;
    else if (are(a, b, ROLE_METAL, ROLE_COORDINATES))
        kind = METAL_BOND;
    if (kind == NO_INTERACTION)
        return {kind, 0.0f, 0.0f};
    const unsigned limit = inputs.limits[kind];
    const unsigned d2 = squared(b.position.x - a.position.x, b.position.y - a.position.y,
                                b.position.z - a.position.z);
    const bool may_be_bonded = kind == HYDROGEN_BOND || kind == HYDROPHOBIC_CONTACT;
    if (d2 >= limit * limit || (may_be_bonded && d2 < BONDED * BONDED))
        return {NO_INTERACTION, 0.0f, 0.0f};
    float angle = null_real();
    if (kind == HYDROGEN_BOND) {
        const AtomFrame frame_a = inputs.frames[a_index], frame_b = inputs.frames[b_index];
        const bool may_be_a = a.has(ROLE_DONOR) && b.has(ROLE_ACCEPTOR);
        const bool may_be_b = b.has(ROLE_DONOR) && a.has(ROLE_ACCEPTOR);
        angle = -1.0f;
        if (may_be_a)
            angle = hydrogen_angle(inputs, frame_a, frame_b, difference(b.position, a.position));
        if (may_be_b && angle < 0.0f)
            angle = hydrogen_angle(inputs, frame_b, frame_a, difference(a.position, b.position));
        if (angle < 0.0f)
            return {NO_INTERACTION, 0.0f, 0.0f};
    }
    return {kind, in_angstrom(double(d2)), angle};
}

// Whether a point is above a ring: its projection on the ring's plane is near the centre.
// `apart` is from the centre to the point, or the other way.
__device__ inline bool is_above(Vector normal, Vector apart, unsigned offset)
{
    const double along = dot(normal, apart), square = dot(normal, normal);
    const double beside = dot(apart, apart) - double(offset) * double(offset);
    return beside * square < along * along;
}

// The interaction of the groups that two atoms stand for.
__device__ inline Interaction of_groups(const InteractionInputs& inputs, unsigned a_index, const Site& a,
                                        unsigned b_index, const Site& b)
{
    constexpr unsigned GROUP = ROLE_POSITIVE | ROLE_NEGATIVE | ROLE_RING;
    const Interaction none = {NO_INTERACTION, 0.0f, 0.0f};
    if (!a.has(GROUP) || !b.has(GROUP))
        return none;
    const bool are_rings = a.has(ROLE_RING) && b.has(ROLE_RING);
    unsigned kind = NO_INTERACTION;
    if (are_rings)
        kind = PI_FACE;
    else if (are(a, b, ROLE_RING, ROLE_POSITIVE))
        kind = CATION_PI;
    else if (are(a, b, ROLE_POSITIVE, ROLE_NEGATIVE))
        kind = SALT_BRIDGE;
    if (kind == NO_INTERACTION)
        return none;
    const AtomFrame frame_a = inputs.frames[a_index], frame_b = inputs.frames[b_index];
    const Vector apart = difference(centre_of(b, frame_b), centre_of(a, frame_a));
    const double d2 = dot(apart, apart), limit = double(inputs.limits[kind]);
    if (d2 >= limit * limit)
        return none;
    float angle = null_real();
    if (kind != SALT_BRIDGE) {
        const Vector from_a = direction_of(frame_a), from_b = direction_of(frame_b);
        const unsigned offset = inputs.limits[RING_OFFSET];
        const bool above_a = a.has(ROLE_RING) && is_above(from_a, apart, offset);
        const bool above_b = b.has(ROLE_RING) && is_above(from_b, apart, offset);
        if (!above_a && !above_b)
            return none;
        const Vector second = are_rings ? from_b : apart;
        angle = of_lines(Angle::between(a.has(ROLE_RING) ? from_a : from_b, second).degrees());
        if (are_rings) {
            // A ring whose atoms are on a line has no plane: its angle is NaN and of neither kind.
            if (!(angle < float(PI_FACE_MAX)) && !(angle > float(PI_EDGE_MIN)))
                return none;
            kind = angle < float(PI_FACE_MAX) ? PI_FACE : PI_EDGE;
            if (!(inputs.limits[LISTED_KINDS] >> kind & 1))
                return none;
        }
    }
    return {kind, in_angstrom(d2), angle};
}

// The search of one atom.
struct InteractionSearch {
    const Cells& cells;
    const Grid& grid;
    const InteractionInputs& inputs;
    unsigned index;
    Site site;
    uint2* places;

    __device__ inline Site site_at(unsigned atom) const
    {
        return {position(inputs.atoms[atom]), inputs.roles[atom]};
    }

    __device__ inline Interaction with(unsigned other, bool of_group) const
    {
        const Site there = site_at(other);
        return of_group ? of_groups(inputs, index, site, other, there)
                        : of_atoms(inputs, index, site, other, there);
    }

    // Calls visit(is_partner, key) for 32 candidates at a time, one per lane. The key of an
    // interaction is twice the index of the later atom, plus one if it is that of their groups.
    template <typename Visit> __device__ inline void each(Visit visit) const
    {
        constexpr unsigned GROUP = ROLE_POSITIVE | ROLE_NEGATIVE | ROLE_RING;
        const bool is_group = site.has(GROUP);
        const unsigned reach = inputs.limits[is_group ? GROUP_REACH : ATOM_REACH];
        const Atom atom = inputs.atoms[index];
        each_candidate(cells, grid, atom, int(reach), places, [&](bool has_atom, unsigned sorted) {
            unsigned other = 0;
            bool is_atoms = false, is_groups = false;
            if (has_atom) {
                other = cells.source[sorted];
                const unsigned d2 = squared(cells.x[sorted] - atom.x, cells.y[sorted] - atom.y,
                                            cells.z[sorted] - atom.z);
                if (other > index && d2 < reach * reach) {
                    const Site there = site_at(other);
                    if (there.roles.owner != site.roles.owner) {
                        is_atoms = of_atoms(inputs, index, site, other, there).kind != NO_INTERACTION;
                        is_groups = is_group
                            && of_groups(inputs, index, site, other, there).kind != NO_INTERACTION;
                    }
                }
            }
            visit(is_atoms, 2 * other);
            if (is_group)
                visit(is_groups, 2 * other + 1);
        });
    }
};

// The structure of an atom, and its index in the batch.
__device__ inline const StructureSpan& structure_of(const StructureSpan* structures,
                                                    const ChainSpan* chains, Atom atom,
                                                    unsigned& index)
{
    index = chains[tag_chain(atom.tag)].structure;
    return structures[index];
}
