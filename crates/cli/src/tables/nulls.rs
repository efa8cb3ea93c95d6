//! Arrays of values of which some stand for null.

use arrow_array::PrimitiveArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_buffer::{BooleanBuffer, NullBuffer};

/// The array of these values; some of them stand for null.
pub(super) fn with_nulls<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    is_null: impl Fn(&T::Native) -> bool,
) -> PrimitiveArray<T> {
    let nulls = nulls(&values, is_null);
    PrimitiveArray::new(values.into(), nulls)
}

/// Which values are not null, if any is null.
pub(super) fn nulls<T>(values: &[T], is_null: impl Fn(&T) -> bool) -> Option<NullBuffer> {
    let valid = BooleanBuffer::collect_bool(values.len(), |row| !is_null(&values[row]));
    Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0)
}
