// Limits of coordinates and radii that kernels share; src/features/layout.rs has the same.
#pragma once

// The largest absolute value of a coordinate in 0.001 A.
constexpr int COORDINATE_MAX = 100000000;
// The largest radius in the tag of an atom, in 0.001 A.
constexpr int RADIUS_MAX = 1900;
