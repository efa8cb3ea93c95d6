//! What an atom can be in an interaction.

use bytemuck::{Pod, Zeroable};

/// What an atom can be in an interaction, as a set. Atoms that stand for a charged group or for an
/// aromatic ring have the role of the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Roles(u16);

impl Roles {
    /// No role.
    pub const NONE: Roles = Roles(0);
    /// Donor of a hydrogen bond: N or O with a hydrogen.
    pub const DONOR: Roles = Roles(1);
    /// Acceptor of a hydrogen bond: N or O with a lone pair.
    pub const ACCEPTOR: Roles = Roles(2);
    /// Carbon that is bonded to carbon and hydrogen alone.
    pub const HYDROPHOBIC: Roles = Roles(4);
    /// The sulfur of a cysteine.
    pub const THIOL: Roles = Roles(8);
    /// Metal.
    pub const METAL: Roles = Roles(16);
    /// N, O, S or Se that can bind a metal.
    pub const COORDINATES: Roles = Roles(32);
    /// It stands for a positive group.
    pub const POSITIVE: Roles = Roles(64);
    /// It stands for a negative group.
    pub const NEGATIVE: Roles = Roles(128);
    /// It stands for an aromatic ring.
    pub const RING: Roles = Roles(256);

    /// Whether it has all roles of `other`.
    pub const fn contains(self, other: Roles) -> bool {
        self.0 & other.0 == other.0
    }

    /// The roles of both.
    pub const fn with(self, other: Roles) -> Self {
        Roles(self.0 | other.0)
    }

    /// The roles as bits, in the order of the constants.
    pub const fn bits(self) -> u16 {
        self.0
    }
}
