// Keys of ladders. A ladder's key is 1 + BRIDGES_MAX times the residue of its first bridge, plus
// the place of the bridge among those of the residue; 0 stands for no ladder. The order of keys is
// the order of ladders: by first residue, then by its partner.
#pragma once
#include "forest.cuh"
#include "ladders.cuh"

__device__ inline unsigned ladder_key(unsigned residue, unsigned which)
{
    return 1 + BRIDGES_MAX * residue + which;
}

// The residue of a ladder's first bridge.
__device__ inline unsigned first_residue(unsigned key) { return (key - 1) / BRIDGES_MAX; }

// What the root of a sheet has in sheets[residues, SHEET_VALUES]: the sheet's number, and where its
// ladders begin and end in the list of the structure's ladders.
constexpr unsigned SHEET_NUMBER = 0, LADDERS_BEGIN = 1, LADDERS_END = 2, SHEET_VALUES = 3;
