// Angles between exact differences of positions. The code calls no maths library, so that results
// are the same on every machine. The CPU version is src/features/cpu/angles.rs.
#pragma once
#include "vector.cuh"

// An angle as its sine and cosine, both times the same positive factor; both are 0 if there is no
// angle.
struct Angle {
    double sin, cos;

    // The dihedral of p1, p2, p3, p4 about the axis from p2 to p3, positive clockwise along it
    // (IUPAC-IUB 1970).
    __device__ static Angle dihedral(Position p1, Position p2, Position p3, Position p4)
    {
        const Vector b1 = difference(p2, p1), b2 = difference(p3, p2), b3 = difference(p4, p3);
        const Vector n1 = cross(b1, b2), n2 = cross(b2, b3);
        return {sqrt(dot(b2, b2)) * dot(b1, n2), dot(n1, n2)};
    }

    __device__ static Angle between(Vector a, Vector b)
    {
        const Vector normal = cross(a, b);
        return {sqrt(dot(normal, normal)), dot(a, b)};
    }

    // The angle in degrees, in (-180, 180], with an error of up to 1e-9 before it is rounded to
    // single precision; null if there is no angle.
    __device__ float degrees() const
    {
        const double s = fabs(sin), c = fabs(cos);
        const double large = fmax(s, c), small = fmin(s, c);
        if (!(large > 0.0))
            return null_real();
        constexpr double TAN_15 = 0.2679491924311227, TAN_30 = 0.5773502691896257;
        constexpr double DEGREES = 57.29577951308232;
        // atan(t) = 30 degrees + atan((t - tan 30) / (1 + t tan 30)), so that eight terms of the
        // series are enough.
        double t = small / large, base = 0.0;
        if (t > TAN_15) {
            t = (t - TAN_30) / (1.0 + t * TAN_30);
            base = 30.0;
        }
        const double t2 = t * t;
        double sum = -1.0 / 15.0;
        sum = sum * t2 + 1.0 / 13.0;
        sum = sum * t2 - 1.0 / 11.0;
        sum = sum * t2 + 1.0 / 9.0;
        sum = sum * t2 - 1.0 / 7.0;
        sum = sum * t2 + 1.0 / 5.0;
        sum = sum * t2 - 1.0 / 3.0;
        sum = sum * t2 + 1.0;
        double angle = t * sum * DEGREES + base;
        angle = s > c ? 90.0 - angle : angle;
        angle = cos < 0.0 ? 180.0 - angle : angle;
        const float rounded = float(sin < 0.0 ? -angle : angle);
        return rounded <= -180.0f ? 180.0f : rounded;
    }
};
