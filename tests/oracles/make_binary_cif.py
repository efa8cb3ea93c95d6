#!/usr/bin/env python3
"""Write mmCIF files as BinaryCIF with Biotite, in each style of encoding.

For each FILE.cif, plain or gzipped, this writes FOLDER/FILE.STYLE.bcif.gz. The styles
together use every encoding, every data type of byte arrays, masks of each kind, and columns
of strings that hold numbers:

  strings     StringArray in every column, with plain indices
  packed      StringArray whose indices and offsets have Delta, RunLength and IntegerPacking
  bytes       ByteArray: numbers as the narrowest integers, and as Float32
  doubles     ByteArray: numbers as Int32 or Uint32, and as Float64
  fixed       FixedPoint, Delta, RunLength and IntegerPacking, by the number of decimals
  quantized   IntervalQuantization for the coordinates, IntegerPacking without signs
  compressed  what biotite.structure.io.pdbx.compress chooses, which drops some fifth decimals

Only the categories that tapeloop reads are written, so that the files are small.
Without --styles the files take turns: each file has one style.

Usage:
  pip install biotite==1.6.0
  python tests/oracles/make_binary_cif.py tests/data/binary_cif tests/data/small/*.cif
  python tests/oracles/make_binary_cif.py tests/data/binary_cif \
      crates/structure/tests/readers/fixtures/two_models.cif --styles all
  python tests/oracles/make_binary_cif.py crates/structure/tests/readers/fixtures \
      crates/structure/tests/readers/fixtures/two_models.cif --styles fixed --plain
"""

import argparse
import gzip
import io
import re
from pathlib import Path

import numpy as np
from biotite.structure.io.pdbx import (
    BinaryCIFBlock,
    BinaryCIFCategory,
    BinaryCIFColumn,
    BinaryCIFData,
    BinaryCIFFile,
    ByteArrayEncoding,
    CIFFile,
    DeltaEncoding,
    FixedPointEncoding,
    IntegerPackingEncoding,
    IntervalQuantizationEncoding,
    RunLengthEncoding,
    StringArrayEncoding,
    TypeCode,
    compress,
)

STYLES = ["strings", "packed", "bytes", "doubles", "fixed", "quantized", "compressed"]
# Those that tapeloop reads, and one that it passes over.
CATEGORIES = {
    "atom_site",
    "chem_comp",
    "em_3d_reconstruction",
    "entity",
    "entity_poly",
    "entry",
    "exptl",
    "ma_qa_metric",
    "ma_target_ref_db_details",
    "pdbx_struct_assembly_gen",
    "pdbx_struct_oper_list",
    "refine",
    "struct",
    "struct_asym",
    "struct_ref",
    "struct_ref_seq",
    "symmetry",
}
INTEGER = re.compile(r"-?(0|[1-9]\d{0,8})")
DECIMAL = re.compile(r"-?\d{1,6}\.\d{1,6}")


def narrowest(values):
    """Return the type code of the narrowest integers that hold the values."""
    for code in (TypeCode.UINT8, TypeCode.INT8, TypeCode.UINT16, TypeCode.INT16):
        limits = np.iinfo(code.to_dtype())
        if limits.min <= values.min() and values.max() <= limits.max:
            return code
    return TypeCode.INT32


def encode_integers(values, style):
    """Return integers with the encodings of a style."""
    values = np.array(values, dtype=np.int32)
    unsigned = bool(values.min() >= 0)
    if style == "bytes":
        encodings = [ByteArrayEncoding(narrowest(values))]
    elif style == "doubles":
        encodings = [ByteArrayEncoding(TypeCode.UINT32 if unsigned else TypeCode.INT32)]
    elif style == "fixed":
        encodings = [DeltaEncoding(), RunLengthEncoding(), packing(2, False)]
    else:
        encodings = [packing(1, unsigned)]
    return BinaryCIFData(values, complete(encodings))


def packing(byte_count, is_unsigned):
    """Return an IntegerPacking, whose size Biotite sets."""
    return IntegerPackingEncoding(byte_count=byte_count, is_unsigned=is_unsigned)


def complete(encodings):
    """Return encodings that end in bytes."""
    if isinstance(encodings[-1], ByteArrayEncoding):
        return encodings
    return [*encodings, ByteArrayEncoding()]


def encode_decimals(texts, style, is_coordinate):
    """Return decimals with the encodings of a style."""
    places = max(len(text.partition(".")[2]) for text in texts)
    if style == "bytes":
        return BinaryCIFData(np.array(texts, dtype=np.float32), [ByteArrayEncoding()])
    values = np.array(texts, dtype=np.float64)
    if style == "doubles":
        return BinaryCIFData(values, [ByteArrayEncoding()])
    if style == "quantized" and is_coordinate and places <= 3:
        # Steps of 0.001 that a Float32 holds.
        low, high = np.floor(values.min()), np.ceil(values.max()) + 1
        steps = int(round((high - low) * 1000)) + 1
        quantized = IntervalQuantizationEncoding(low, high, steps, TypeCode.FLOAT32)
        indices = np.round((values - low) * 1000).astype(np.int32)
        encodings = [quantized, DeltaEncoding(), packing(2, False)]
        return Prepared(indices, complete(encodings))
    encodings = [FixedPointEncoding(10**places), DeltaEncoding(), packing(2, False)]
    return BinaryCIFData(values, complete(encodings))


class Prepared(BinaryCIFData):
    """Data whose first encoding was applied already, exactly."""

    def __init__(self, indices, encodings):
        super().__init__(indices, encodings[1:])
        self.first = encodings[0]

    def serialize(self):
        out = super().serialize()
        out["encoding"].insert(0, self.first.serialize())
        return out


def encode_strings(texts, style):
    """Return strings with the encodings of a style."""
    array = np.array(texts, dtype=str)
    if style in ("strings", "bytes", "doubles"):
        return BinaryCIFData(array, [StringArrayEncoding()])
    indices = {
        "packed": [DeltaEncoding(), RunLengthEncoding(), packing(1, False)],
        "fixed": [RunLengthEncoding(), packing(1, True)],
        "quantized": [packing(2, True)],
    }[style]
    offsets = [DeltaEncoding(), RunLengthEncoding(), packing(1, True)]
    encoding = StringArrayEncoding(None, complete(indices), complete(offsets))
    return BinaryCIFData(array, [encoding])


def encode_mask(mask, style):
    """Return a mask with the encodings of a style; None if nothing is masked."""
    mask = np.array(mask, dtype=np.uint8)
    if not mask.any() and style != "packed":
        return None
    if style in ("strings", "bytes"):
        return BinaryCIFData(mask, [ByteArrayEncoding(TypeCode.UINT8)])
    if style in ("packed", "doubles"):
        return BinaryCIFData(mask, [RunLengthEncoding(), ByteArrayEncoding(TypeCode.INT32)])
    return BinaryCIFData(mask, complete([RunLengthEncoding(), packing(1, True)]))


def encode_column(name, column, style):
    """Return a column of a CIF file in a style."""
    mask = None if column.mask is None else column.mask.array
    texts = [str(text) for text in column.data.array]
    mask = np.zeros(len(texts), dtype=np.uint8) if mask is None else mask
    present = [text for text, null in zip(texts, mask) if null == 0]
    numbers = style not in ("strings", "packed") and present
    filled = lambda other: [other if null else text for text, null in zip(texts, mask)]
    if numbers and all(INTEGER.fullmatch(text) for text in present):
        data = encode_integers(filled("0"), style)
    elif numbers and all(INTEGER.fullmatch(t) or DECIMAL.fullmatch(t) for t in present):
        data = encode_decimals(filled("0"), style, name.startswith("Cartn_"))
    else:
        # Alone, a mask makes a null.
        data = encode_strings(filled("" if style == "packed" else "?"), style)
    return BinaryCIFColumn(data, encode_mask(mask, style))


def convert(file, style):
    """Return a CIF file as BinaryCIF in a style."""
    base = "doubles" if style == "compressed" else style
    blocks = {}
    for header, block in file.items():
        categories = {}
        for name in sorted(CATEGORIES.intersection(block)):
            columns = block[name].items()
            categories[name] = BinaryCIFCategory(
                {item: encode_column(item, column, base) for item, column in columns}
            )
        blocks[header] = BinaryCIFBlock(categories)
    binary = BinaryCIFFile(blocks)
    return compress(binary) if style == "compressed" else binary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--styles", default="", help="names with commas, or all")
    parser.add_argument("--plain", action="store_true", help="write FILE.bcif without gzip")
    options = parser.parse_args()
    chosen = STYLES if options.styles == "all" else [s for s in options.styles.split(",") if s]
    options.folder.mkdir(parents=True, exist_ok=True)
    for at, path in enumerate(sorted(options.files)):
        opened = gzip.open if path.suffix == ".gz" else open
        stem = path.name.partition(".")[0]
        try:
            with opened(path, "rt", encoding="latin-1", newline=None) as text:
                file = CIFFile.read(text)
            if not file:
                raise ValueError("Biotite finds no data block")
            for style in chosen or [STYLES[at % len(STYLES)]]:
                out = io.BytesIO()
                convert(file, style).write(out)
                data = out.getvalue()
                if options.plain:
                    (options.folder / f"{stem}.bcif").write_bytes(data)
                else:
                    name = f"{stem}.{style}.bcif.gz"
                    (options.folder / name).write_bytes(gzip.compress(data, mtime=0))
        except Exception as error:
            print(f"{path}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
