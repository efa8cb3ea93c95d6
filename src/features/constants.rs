//! The integer constants that the kernels declare. The build script reads them from `kernels/`, so
//! that a kernel and its twin share one declaration.

#![allow(dead_code, reason = "twins need only some of the kernels' constants")]

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
