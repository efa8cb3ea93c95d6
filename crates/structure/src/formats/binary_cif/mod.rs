//! The reader for BinaryCIF files: mmCIF in columns, each with its own encodings, as MessagePack.
//! The specification is version 0.3 of <https://github.com/molstar/BinaryCIF>.
//!
//! Only the columns that the mmCIF reader takes are decoded. What their values mean is decided
//! where that reader decides it: in [`atom_site`](super::mmcif::atom_site) and
//! [`data_block`](super::mmcif::data_block).
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) with the byte, column or row, and
//! [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) for more than a limit allows.

mod atom_columns;
mod category;
mod column;
mod decoders;
mod encodings;
mod expansion;
mod float_decimal;
mod ints;
mod message_pack;
mod number_text;
mod text_column;
mod values;

use self::category::Category;
use self::expansion::ExpansionBudget;
use self::message_pack::Cursor;
use self::text_column::TextColumn;
use super::mmcif::OtherContent;
use super::mmcif::data_block::{BlockCategory, DataBlock};
use crate::ReadOptions;
use crate::Result;
use crate::atom_table::AtomTable;
use crate::model::Assembly;
use crate::text::FilePlace;

/// Whether a file starts as BinaryCIF does: a map with one of its keys.
pub(super) fn starts_file(bytes: &[u8]) -> bool {
    message_pack::starts_map(bytes, &[b"encoder", b"version", b"dataBlocks"])
}

/// Where a row of `_atom_site` is.
pub(super) fn place(_: &[u8], row: u32) -> FilePlace<'_> {
    FilePlace::Row("atom_site", row)
}

/// Reads a BinaryCIF file into `table`: its first data block with atoms.
pub(super) fn read(file: &[u8], options: ReadOptions, table: &mut AtomTable) -> Result<()> {
    let mut expansion = ExpansionBudget::new(table.limits, table.file_bytes);
    let mut content = OtherContent::default();
    let mut has_blocks = false;
    let mut has_atoms = false;
    Cursor::new(file).map(|key, value| {
        if key != b"dataBlocks" || has_blocks {
            return value.skip();
        }
        has_blocks = true;
        for _ in 0..value.array()? {
            if has_atoms {
                value.skip()?;
                continue;
            }
            let block = BinaryBlock::read(value, options, &mut expansion, &mut content, table)?;
            has_atoms = block.has_atoms;
            if has_atoms {
                block.describe_atoms(options, table)?;
            }
        }
        Ok(())
    })?;
    if !has_blocks {
        return Err(Cursor::new(file).error("the MessagePack data has no \"dataBlocks\""));
    }
    if table.atoms.is_empty() {
        Err(content.error())
    } else {
        Ok(())
    }
}

/// The values that are kept of a data block, besides its atoms.
#[derive(Default)]
struct BinaryBlock<'a> {
    header: &'a [u8],
    has_atoms: bool,
    entry_id: Option<TextColumn<'a>>,
    categories: Vec<KeptCategory<'a>>,
}

/// A category that describes the atoms.
struct KeptCategory<'a> {
    category: BlockCategory,
    rows: u32,
    /// The columns that are kept, each with the index of its item.
    columns: Vec<(usize, TextColumn<'a>)>,
}

/// What a category is read for.
enum CategoryRole {
    Atoms,
    Entry,
    /// The category describes the atoms.
    Describes(BlockCategory),
}

/// What a category is read for; `None` if it is not read.
fn role_of(category: &[u8], options: ReadOptions) -> Option<CategoryRole> {
    let name = category.strip_prefix(b"_")?;
    if name.eq_ignore_ascii_case(b"atom_site") {
        return Some(CategoryRole::Atoms);
    }
    if name.eq_ignore_ascii_case(b"entry") {
        return Some(CategoryRole::Entry);
    }
    BlockCategory::find(name, options).map(CategoryRole::Describes)
}

impl<'a> BinaryBlock<'a> {
    /// Reads a data block, and adds its atoms to the table.
    fn read(
        cursor: &mut Cursor<'a>,
        options: ReadOptions,
        expansion: &mut ExpansionBudget,
        content: &mut OtherContent,
        table: &mut AtomTable,
    ) -> Result<Self> {
        let mut block = BinaryBlock::default();
        cursor.map(|key, value| {
            match key {
                b"header" => block.header = value.text()?,
                b"categories" => {
                    for _ in 0..value.array()? {
                        let is_wanted = |name: &[u8]| role_of(name, options).is_some();
                        let category = Category::read(value, is_wanted)?;
                        content.note_category(category.name);
                        block.add(category, options, expansion, table)?;
                    }
                }
                _ => value.skip()?,
            }
            Ok(())
        })?;
        let what = "the name of the data block";
        table.limits.check_name(what, block.header)?;
        Ok(block)
    }

    /// Reads a category: adds the atoms of its rows to `table`, takes the entry's id, or keeps its
    /// columns for later. Any other category is skipped.
    fn add(
        &mut self,
        mut category: Category<'a>,
        options: ReadOptions,
        expansion: &mut ExpansionBudget,
        table: &mut AtomTable,
    ) -> Result<()> {
        let kept = match role_of(category.name, options) {
            Some(CategoryRole::Atoms) => {
                self.has_atoms = true;
                return atom_columns::read(category, options.models, expansion, table);
            }
            Some(CategoryRole::Entry) => {
                for column in category.take_columns()? {
                    if column.name.eq_ignore_ascii_case(b"id") && category.rows > 0 {
                        let column = category.decode(&column, expansion)?;
                        self.entry_id = Some(TextColumn::new(column, expansion)?);
                    }
                }
                return Ok(());
            }
            Some(CategoryRole::Describes(kept)) => kept,
            None => return Ok(()),
        };
        kept.check_rows(category.rows as usize, &table.limits)?;
        let mut columns = Vec::new();
        for column in category.take_columns()? {
            if let Some(item) = kept.find_item(column.name) {
                let column = category.decode(&column, expansion)?;
                columns.push((item, TextColumn::new(column, expansion)?));
            }
        }
        self.categories.push(KeptCategory {
            category: kept,
            rows: category.rows,
            columns,
        });
        Ok(())
    }

    /// Adds to the table what the block states about its atoms.
    fn describe_atoms(&self, options: ReadOptions, table: &mut AtomTable) -> Result<()> {
        let limits = table.limits;
        let mut block = DataBlock::new(self.header, options);
        if let Some(id) = &self.entry_id {
            block.set_entry_id(id.get(0), &limits)?;
        }
        for kept in &self.categories {
            let name = kept.category.name();
            for row in 0..kept.rows {
                let values = kept.columns.iter().map(|(item, column)| {
                    (*item, column.get(row as usize), FilePlace::Row(name, row))
                });
                block.keep_row(kept.category, row, values, &limits)?;
            }
        }
        block.describe_atoms(table)?;
        match options.assembly {
            Assembly::Deposited => Ok(()),
            Assembly::First => block.generators(FilePlace::Row, &limits, &mut table.generators),
        }
    }
}
