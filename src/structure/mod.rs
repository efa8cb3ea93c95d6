//! The protein model and its readers.
