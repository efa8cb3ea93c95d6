#include "work.cuh"

// Words of a side chain's definition in the header; see `words` in
// src/features/side_chain_atoms.rs.
constexpr unsigned DEFINITION_WORDS = 7;

// The names of a residue's atoms, each a code of one byte.
struct Names {
    const unsigned char* names;
    unsigned count;
    // The usual and the other name of an atom of the definition that has two; 0 for none.
    unsigned char usual, other;

    // The first atom of that name; `count` if there is none.
    __device__ inline unsigned first(unsigned char name) const
    {
        unsigned index = 0;
        while (index < count && names[index] != name)
            ++index;
        return index;
    }

    __device__ inline unsigned find(unsigned char name) const
    {
        const unsigned index = first(name);
        return index == count && name == usual ? first(other) : index;
    }
};

// Finds the atoms of each residue's side chain by their names, one thread per residue. The
// definitions of the side chains of A to Z are in the header from index `definitions` on.
KERNEL(256)
side_chain_atoms(const unsigned* header, const ResidueSpan* residues, const Atom* atoms,
                 const unsigned char* names, SideChain* sides, unsigned definitions)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned row) {
        constexpr Position NONE = {MISSING, MISSING, MISSING};
        const ResidueSpan residue = residues[row];
        SideChain side = {NONE, {NONE, NONE, NONE, NONE, NONE}, 0, NULL_COUNT, NULL_COUNT, 0};
        const unsigned letter = residue.aa - unsigned('A');
        const unsigned* words = header + definitions + DEFINITION_WORDS * (letter < 26 ? letter : 0);
        // The lowest bit is set if the letter has a definition.
        if ((residue.flags & NAMED) && letter < 26 && (words[0] & 1)) {
            const unsigned atom_count = words[0] >> 8 & 255, symmetric = words[0] >> 24;
            const Names names_of_residue = {names + residue.atom_start, residue.atom_count,
                                     (unsigned char)(words[1]), (unsigned char)(words[1] >> 8)};
            const auto code = [&](unsigned first, unsigned index) {
                return (unsigned char)(words[first + index / 4] >> index % 4 * 8);
            };
            const auto position = [&](unsigned char name) {
                const unsigned index = names_of_residue.find(name);
                if (index == residue.atom_count)
                    return NONE;
                const Atom atom = atoms[residue.atom_start + index];
                return Position{atom.x, atom.y, atom.z};
            };
            if (atom_count > 0)
                side.beta = position(code(2, 0));
            for (unsigned i = 0; i < 5; ++i)
                if (const unsigned char name = code(5, i))
                    side.chain[i] = position(name);
            if (symmetric > 0)
                side.symmetric = symmetric;
            if (residue.flags & STANDARD) {
                side.bins = words[0] >> 16 & 255;
                side.missing = 0;
                for (unsigned i = 0; i < atom_count; ++i)
                    side.missing += names_of_residue.find(code(2, i)) == residue.atom_count;
            }
        }
        sides[row] = side;
    });
}
