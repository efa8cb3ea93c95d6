//! Writes BinaryCIF files for tests, valid or not.

/// A MessagePack value.
#[derive(Clone, Debug)]
pub(crate) enum Pack {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Array(Vec<Pack>),
    Map(Vec<(&'static str, Pack)>),
}

impl From<&str> for Pack {
    fn from(text: &str) -> Self {
        Pack::Text(text.to_owned())
    }
}

impl Pack {
    /// The bytes of the value, with lengths of 32 bits.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = |out: &mut Vec<u8>, marker: u8, len: usize| {
            out.push(marker);
            out.extend((len as u32).to_be_bytes());
        };
        match self {
            Pack::Nil => out.push(0xc0),
            Pack::Bool(value) => out.push(0xc2 + u8::from(*value)),
            Pack::Int(value) => {
                out.push(0xd3);
                out.extend(value.to_be_bytes());
            }
            Pack::Float(value) => {
                out.push(0xcb);
                out.extend(value.to_be_bytes());
            }
            Pack::Text(text) => {
                start(out, 0xdb, text.len());
                out.extend(text.as_bytes());
            }
            Pack::Bytes(bytes) => {
                start(out, 0xc6, bytes.len());
                out.extend(bytes);
            }
            Pack::Array(items) => {
                start(out, 0xdd, items.len());
                items.iter().for_each(|item| item.write(out));
            }
            Pack::Map(pairs) => {
                start(out, 0xdf, pairs.len());
                for (key, value) in pairs {
                    Pack::from(*key).write(out);
                    value.write(out);
                }
            }
        }
    }
}

/// The encoding `kind` with its parameters.
pub(crate) fn encoding(kind: &str, parameters: &[(&'static str, Pack)]) -> Pack {
    Pack::Map([&[("kind", Pack::from(kind))], parameters].concat())
}

/// The encoding ByteArray of a data type: 3 is Int32.
pub(crate) fn byte_array(data_type: i64) -> Pack {
    encoding("ByteArray", &[("type", Pack::Int(data_type))])
}

/// Bytes with the encodings that made them.
pub(crate) fn data(encodings: Vec<Pack>, bytes: Vec<u8>) -> Pack {
    Pack::Map(vec![
        ("encoding", Pack::Array(encodings)),
        ("data", Pack::Bytes(bytes)),
    ])
}

/// The bytes of 32-bit integers.
pub(crate) fn int_bytes(values: &[i32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Integers as Int32 after other encodings.
pub(crate) fn ints(mut encodings: Vec<Pack>, values: &[i32]) -> Pack {
    encodings.push(byte_array(3));
    data(encodings, int_bytes(values))
}

/// One value for `rows` rows, by RunLength.
pub(crate) fn repeated(mut encodings: Vec<Pack>, value: i32, rows: u32) -> Pack {
    let size = [("srcSize", Pack::Int(i64::from(rows)))];
    encodings.push(encoding("RunLength", &size));
    ints(encodings, &[value, rows as i32])
}

/// Strings of which each row has an index. `data` has the encodings and bytes of the indices.
pub(crate) fn strings(strings: &[&str], index: &Pack) -> Pack {
    let mut offsets = vec![0];
    for string in strings {
        offsets.push(offsets[offsets.len() - 1] + string.len() as i32);
    }
    let Pack::Map(index) = index else {
        panic!("an index is a map");
    };
    let parameters = [
        ("dataEncoding", index[0].1.clone()),
        ("stringData", Pack::Text(strings.concat())),
        ("offsetEncoding", Pack::Array(vec![byte_array(3)])),
        ("offsets", Pack::Bytes(int_bytes(&offsets))),
    ];
    let encodings = vec![encoding("StringArray", &parameters)];
    Pack::Map(vec![("encoding", Pack::Array(encodings)), index[1].clone()])
}

/// A column without a mask.
pub(crate) fn column(name: &str, data: Pack) -> Pack {
    masked(name, data, Pack::Nil)
}

pub(crate) fn masked(name: &str, data: Pack, mask: Pack) -> Pack {
    Pack::Map(vec![("name", name.into()), ("data", data), ("mask", mask)])
}

pub(crate) fn category(name: &str, rows: u32, columns: Vec<Pack>) -> Pack {
    Pack::Map(vec![
        ("name", name.into()),
        ("rowCount", Pack::Int(i64::from(rows))),
        ("columns", Pack::Array(columns)),
    ])
}

/// A file with one data block.
pub(crate) fn file(categories: Vec<Pack>) -> Vec<u8> {
    let block = Pack::Map(vec![
        ("header", "TEST".into()),
        ("categories", Pack::Array(categories)),
    ]);
    let file = Pack::Map(vec![
        ("version", "0.3.0".into()),
        ("dataBlocks", Pack::Array(vec![block])),
        ("encoder", "test".into()),
    ]);
    file.bytes()
}
