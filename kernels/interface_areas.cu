#include "interfaces.cuh"

// Computes for each partner of a residue the part of the residue's area in its own chain that the
// partner alone buries, in units of 1e-6 A^2 per point; one warp per residue. The header has the
// test points as for sasa; `rooms` and `ends` are those of interface_partners.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
interface_areas(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, const unsigned* rooms,
                const int* ends, const unsigned* partners, unsigned long long* buried,
                unsigned first, unsigned points, unsigned probe)
{
    wait_for_dependencies();
    write_partner_areas<shrake_rupley::ShrakeRupley>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, rooms, ends, partners, buried, first,
        points, probe);
}
