#!/usr/bin/env python3
"""Make crates/structure/src/frequent_components.cif, the library's own dictionary.

It has the atoms and bonds of the components in COMPONENTS, as the wwPDB chemical
component dictionary (CC0) has them, which the PyPI package biotite carries: ligands
and modified residues that occur in many entries, those of one heavy atom left out.

Usage:
  pip install biotite==1.6.0
  python scripts/make_frequent_components.py
"""

import argparse
import importlib.metadata
from pathlib import Path

import biotite.structure.info
from biotite.structure.io.pdbx import BinaryCIFFile

# Agents of crystallisation; saccharides; nucleotides and cofactors; heme and
# chlorophyll; metabolites; modified amino acids; modified nucleotides.
COMPONENTS = """
    1PE ACT ACY AZI BEN BME CAC CIT CO3 DMS DTT EDO EOH EPE FLC FMT GOL IMD IPA MES MLI
    MPD NO3 P6G PEG PG4 PGE PO4 POP SCN SO4 SPD SPM TLA TRS
    A2G BGC BMA BOG FRU FUC FUL GAL GLA GLC LMT MAL MAN NAG NDG SIA SUC TRE XYP XYS
    5GP A3P ACO ACP ADE ADN ADP AGS AMP ANP ATP BTN C2E C5P CDP CMP COA CTP FAD FMN FOL
    GCP GDP GNP GSH GSP GTP H4B MTX NAD NAI NAP NDP ORO PAP PLP PMP PQQ SAH SAM SFG TDP
    THF THM TMP TPP TTP TYD U5P UDP UMP UPG URA UTP
    B12 BCL CLA CMO CYN F3S FES HEA HEC HEM OXY PHO SF4
    2PE AKG CHD CLR DHT EST FUM MLT MYR OAA OGA OLA PLM PYR RET SIN STE STI STR STU TES
    ALY CGU CME CR2 CRO CSD CSO CSS CSX FME HIC HYP KCX LLP M3L MEN MLY MLZ MSE NEP OCS
    PCA PTR SEP SMC TPO TYS YCM
    1MA 2MG 4SU 5MC 5MU 7MG A2M G7M H2U M2G OMC OMG PSU YG
""".split()

CATEGORIES = {
    "chem_comp_atom": ["comp_id", "atom_id", "type_symbol"],
    "chem_comp_bond": ["comp_id", "atom_id_1", "atom_id_2", "value_order", "pdbx_aromatic_flag"],
}


def quoted(value):
    """Return a value as CIF has it: with quotes where it has a prime."""
    return f'"{value}"' if "'" in value else value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent.parent / "crates/structure/src/frequent_components.cif",
        help="file to write (default: %(default)s)",
    )
    args = parser.parse_args()

    path = Path(biotite.structure.info.__file__).parent / "components.bcif"
    block = BinaryCIFFile.read(path).block
    newest = max(block["chem_comp"]["pdbx_modified_date"].as_array(str))
    version = importlib.metadata.version("biotite")
    wanted = set(COMPONENTS)
    lines = [
        f"# wwPDB chemical component dictionary (newest change {newest}) in PyPI biotite {version};\n",
        "# scripts/make_frequent_components.py\n",
        "data_frequent_components\n",
    ]
    for category, items in CATEGORIES.items():
        columns = [block[category][item].as_array(str) for item in items]
        rows = [row for row in zip(*columns, strict=True) if str(row[0]) in wanted]
        if missing := wanted - {str(row[0]) for row in rows}:
            raise SystemExit(f"{category} lacks {sorted(missing)}")
        lines.append("loop_\n" + "".join(f"_{category}.{item}\n" for item in items))
        rows.sort(key=lambda row: str(row[0]))
        lines += [" ".join(quoted(str(value)) for value in row) + "\n" for row in rows]
    args.out.write_text("".join(lines), encoding="ascii")
    print(f"{args.out}: {len(wanted)} components, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
