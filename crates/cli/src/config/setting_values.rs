//! [`SettingValues`]: the values that a key takes, for programs that declare the keys.

/// The values that a key takes, without their ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValues {
    Integer,
    Number,
    Flag,
    Text,
    /// The path of a file or a folder.
    Path,
    /// One of these texts.
    Choice(Vec<&'static str>),
    /// A list of such values.
    List(Box<SettingValues>),
    /// A list of tables, whose keys are not declared.
    Tables,
    /// Any of these.
    OneOf(Vec<SettingValues>),
}

impl SettingValues {
    /// Such a value, or a list of them.
    pub(super) fn or_list(self) -> Self {
        let list = SettingValues::List(Box::new(self.clone()));
        SettingValues::OneOf(vec![self, list])
    }
}
