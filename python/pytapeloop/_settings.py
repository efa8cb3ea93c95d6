"""The settings with their types, for editors and type checkers. docs/CONFIG.md explains them.

``scripts/make_python_settings.py`` writes this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypedDict


class Chains(TypedDict, total=False):
    """Keys of the table ``chains``."""

    split: Literal["auto", "id", "ter", "segid", "number"]


class Limits(TypedDict, total=False):
    """Keys of the table ``limits``."""

    text_bytes_max: int
    unpack_ratio_max: int
    name_bytes_max: int
    atoms_max: int
    residues_max: int
    models_max: int
    chains_max: int
    operators_max: int
    assembly_atoms_max: int
    assembly_residues_max: int
    row_names_bytes_max: int
    reading_bytes_max: int
    annotation_bytes_max: int
    structure_residues_max: int


class ContactNumber(TypedDict, total=False):
    """Keys of the table ``contact_number``."""

    ca: float | Sequence[float]
    cb: float | Sequence[float]
    chains: Literal["all", "own"]


class Wcn(TypedDict, total=False):
    """Keys of the table ``wcn``."""

    chains: Literal["all", "own"]


class HseA(TypedDict, total=False):
    """Keys of the table ``hse_a``."""

    radius: float
    chains: Literal["all", "own"]


class HseB(TypedDict, total=False):
    """Keys of the table ``hse_b``."""

    radius: float
    chains: Literal["all", "own"]


class Dssp(TypedDict, total=False):
    """Keys of the table ``dssp``."""

    version: Literal["2", "4"]
    chains: Literal["all", "own"]


class Sasa(TypedDict, total=False):
    """Keys of the table ``sasa``."""

    algorithm: Literal["shrake-rupley", "lee-richards"]
    points: int
    slices: int
    probe: float
    chains: Literal["all", "own"]
    radii: Literal["protor", "naccess", "oons", "bondi"] | str | PathLike[str]


class Rsa(TypedDict, total=False):
    """Keys of the table ``rsa``."""

    scale: Literal["tien2013", "miller1987", "rose1985", "rost1994"]


class InterfaceResidues(TypedDict, total=False):
    """Keys of the table ``interface_residues``."""

    cutoff: float


class Protrusion(TypedDict, total=False):
    """Keys of the table ``protrusion``."""

    radius: float
    chains: Literal["all", "own"]


class ResidueDepth(TypedDict, total=False):
    """Keys of the table ``residue_depth``."""

    chains: Literal["none", "all", "own"]


class ContactOrder(TypedDict, total=False):
    """Keys of the table ``contact_order``."""

    cutoff: float
    separation: Literal["sequence", "res_index"]


class Centrality(TypedDict, total=False):
    """Keys of the table ``centrality``."""

    steps: int


class Cluster(TypedDict, total=False):
    """Keys of the table ``cluster``."""

    select: str | Sequence[str]
    chains: Literal["all", "own"]


class Smooth(TypedDict, total=False):
    """Keys of the table ``smooth``."""

    channels: str | Sequence[str]
    radius: float
    weighted: bool
    chains: Literal["all", "own"]


class Contacts(TypedDict, total=False):
    """Keys of the table ``contacts``."""

    atom: Literal["none", "ca", "cb", "any"]
    cutoff: float
    nearest: int
    chains: Literal["all", "own"]


class Ligand(TypedDict, total=False):
    """Keys of the table ``ligand``."""

    agents: Literal["drop", "keep"]
    cutoff: float


class Interaction(TypedDict, total=False):
    """Keys of the table ``interaction``."""

    kinds: str | Sequence[str]
    components: Literal["none"] | str | PathLike[str]
    waters: bool
    water_bridge: float
    hydrogen_bond: float
    hydrogen: float
    salt_bridge: float
    disulfide: float
    pi_stacking: float
    cation_pi: float
    ring_offset: float
    hydrophobic: float
    metal_coordination: float


class Batch(TypedDict, total=False):
    """Keys of the table ``batch``."""

    residues: int
    residues_max: int
    deadline_ms: int


class Tables(TypedDict, total=False):
    """Keys of the table ``tables``."""

    format: Literal["parquet", "arrow", "csv", "json"]
    written: (
        Literal["residues", "chains", "structures", "contacts", "hydrogen_bonds", "ligands",
        "interfaces", "atoms", "interactions", "water_bridges", "variants"] |
        Sequence[Literal["residues", "chains", "structures", "contacts", "hydrogen_bonds",
        "ligands", "interfaces", "atoms", "interactions", "water_bridges", "variants"]]
    )
    inputs_per_part: int
    residues_per_part: int
    rows_per_group: int
    compression: Literal["zstd", "lz4", "none"]
    compression_level: int
    pair_names: bool
    annotations: str | Sequence[str]
    where: str
    where_atoms: str


class Settings(TypedDict, total=False):
    """Keys of the config file."""

    members: str
    topology: str | PathLike[str]
    frames: str
    shard: str
    models: Literal["first", "all", "joined"]
    chains: Chains
    nucleic: bool
    assembly: Literal["deposited", "1"]
    b_factor: Literal["auto", "b", "plddt"]
    strict: (
        bool | Literal["truncated", "dropped_residues", "unknown_atoms", "left_out_atoms",
        "repaired_fields", "corrected_elements", "contradictory_names", "split_chains",
        "models_of_assembly"] | Sequence[Literal["truncated", "dropped_residues", "unknown_atoms",
        "left_out_atoms", "repaired_fields", "corrected_elements", "contradictory_names",
        "split_chains", "models_of_assembly"]]
    )
    input_format: Literal["auto", "pdb", "mmcif", "bcif"]
    limits: Limits
    annotations: str | PathLike[str] | Sequence[str | PathLike[str]]
    annotations_unmatched: Literal["error", "allow"]
    fusion: Literal["off", "on"]
    reals: Literal["f32", "f16", "bf16"]
    contact_number: ContactNumber
    wcn: Wcn
    hse_a: HseA
    hse_b: HseB
    dssp: Dssp
    sheets: bool
    sasa: Sasa
    rsa: Rsa
    interface_residues: InterfaceResidues
    protrusion: Protrusion
    residue_depth: ResidueDepth
    contact_order: ContactOrder
    centrality: Centrality
    cluster: Cluster
    smooth: Smooth
    contacts: Contacts
    hydrogen_bonds: bool
    atoms: bool
    ligands: Literal["drop", "keep"]
    ligand: Ligand
    interfaces: bool
    interactions: bool
    interaction: Interaction
    kernel: Sequence[dict[str, Any]]
    reduce: str | Sequence[str]
    coordinates: Literal["ca", "cb", "backbone"] | Sequence[Literal["ca", "cb", "backbone"]]
    seqres: bool
    unobserved: bool
    backend: Literal["auto", "cuda", "cpu"]
    device: int | str
    devices: int | str | Sequence[int | str]
    nvrtc: str | PathLike[str]
    kernel_cache: str | PathLike[str]
    mode: Literal["graph", "stream", "resident"]
    resident_idle_us: int
    resident_busy_us: int
    transfer: Literal["copy", "mapped", "auto"]
    mapped_bytes_max: int
    fallback: Literal["none", "launches"]
    verify: Literal["first", "off"] | int
    supervise: bool
    worker: str | PathLike[str]
    restarts_max: int
    slots: int
    threads: int
    wait: Literal["block", "spin", "sleep"]
    batch: Batch
    memory_bytes_max: int
    tables: Tables


class RunSettings(Settings, total=False):
    """The settings of ``run``."""

    features: str | Sequence[str]
    timeline: str | PathLike[str]
