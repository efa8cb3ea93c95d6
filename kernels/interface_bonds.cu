#include "dssp.cuh"
#include "interfaces.cuh"

// A bond's energy is below this, in cal/mol.
constexpr int BOND_BELOW = -500;

// Counts the hydrogen bonds between the backbones of the two chains of each row of interface_rows, one
// warp per donor. `atoms` are C-alphas.
KERNEL(32 * WARPS)
interface_bonds(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                const Backbone* backbone, const float4* hydrogens, const unsigned* rooms,
                const int* row_ends, const int* pairs, int* bonds /* updated */)
{
    each_warp(header, RESIDUES, [&](unsigned own) {
        const ResidueSpan residue = residues[own];
        const StructureSpan& structure = structures[residue.structure];
        const float4 hydrogen = hydrogens[own];
        if (hydrogen.w != DONOR || structure.chain_count < 2)
            return;
        const Cells cells = CELLS_OF_PARAMS;
        const Atom atom = atoms[own];
        const unsigned* room = rooms + 2 * residue.structure;
        const auto visit = [&](bool is_one, unsigned at) {
            if (!is_one || same_chain(cells.tag[at], atom.tag)
                || squared(cells.x[at] - atom.x, cells.y[at] - atom.y, cells.z[at] - atom.z)
                    >= BOND_REACH * BOND_REACH)
                return;
            const unsigned acceptor = cells.source[at];
            if (hydrogens[acceptor].w == INCOMPLETE || own == acceptor + 1)
                return;
            const Backbone& to = backbone[acceptor];
            if (bond_energy(backbone[own].n, hydrogen, to.c, to.o) >= BOND_BELOW)
                return;
            const unsigned chain = residues[acceptor].chain;
            const unsigned earlier = min(chain, residue.chain);
            const int later = int(max(chain, residue.chain) - structure.chain_start);
            const Entries rows = interfaces_of(structure, row_ends, earlier, room);
            for (unsigned row = rows.begin; row < rows.end; ++row)
                if (pairs[2 * row + 1] == later)
                    atomicAdd(&bonds[row], 1);
        };
        uint2* places = warp_memory<Places, WARPS>().of;
        each_candidate(cells, structure.residue_grid, atom, BOND_REACH, places, visit);
    });
}
