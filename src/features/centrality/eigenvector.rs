//! The eigenvector of the largest eigenvalue of a chain's contact matrix.
//!
//! Chebyshev-filtered subspace iteration (Zhou, Saad, Tiago and Chelikowsky 2006, J Comput Phys
//! 219:172) with two vectors. A round applies a polynomial of the matrix A to both, which damps the
//! eigenvectors of small eigenvalues, and the Rayleigh-Ritz step then separates the two in their
//! plane. So two eigenvalues that are nearly the same, as those of two domains, converge as fast as
//! if they were far apart, and their difference is known.
//!
//! The filter computes the change p(A) x - p(value) x of a vector x from its residual
//! r = A x - value x. The change gets smaller from round to round, so f32 suffices for all vectors
//! that are multiplied with A, while x and A x are f64.

use super::super::constants;
use super::super::cpu::tree_sum;
use std::ops::AddAssign;

/// The largest residual |A v - value v| of a result, in shares of the eigenvalue.
const RESIDUAL: f64 = 5e-7;
/// The largest error of a result, estimated as the residual divided by the distance from the
/// eigenvalue to those that the residual consists of: a third of what the column may differ from
/// other programs.
const VECTOR_ERROR: f64 = 3e-5;
/// Two eigenvalues that differ by less are the same, in shares of the larger: each may be wrong by
/// [`RESIDUAL`].
const GAP: f64 = 1e-6;
/// The second vector is dropped if subtracting its part along the first leaves no more than this
/// share of its squared length, which would have few digits that are not rounding errors.
const DEPENDENT: f64 = 1e-12;
// The constants from here to `DEGREE_MAX` decide how many products a chain takes, which
// src/features/DECISIONS.md has for 770 chains. Whether a vector is a result is decided by those
// above, and by `UPPER_MAX` if the next eigenvalue is nearer to the largest than that.
/// The largest eigenvalue that the filter damps, in shares of the Ritz value. In the first round it
/// is at least `UPPER_FIRST`; otherwise it is the Rayleigh quotient of the residual, between
/// `UPPER_MIN` and `UPPER_MAX`, as the interval has to end below the Ritz value.
const UPPER_FIRST: f64 = 0.7;
const UPPER_MIN: f64 = 0.3;
const UPPER_MAX: f64 = 0.9999;
/// The smallest eigenvalue that the filter damps, in shares of the Ritz value. It becomes -1, below
/// which there is none, once the Rayleigh quotient of the residual is negative.
const LOWER: f64 = -0.4;
/// The largest factor by which a round damps.
const GAIN_MAX: f64 = 1000.0;
/// A round damps by the factor that seems needed, times this.
const GAIN_SPARE: f64 = 10.0;
/// The largest degree of the first round's polynomial; it doubles with each round. The first Ritz
/// value may be so far below the eigenvalue that higher degrees would overflow.
const DEGREE_FIRST: u32 = constants::DEGREE_FIRST;
/// The largest degree of any round's polynomial. Ritz values and residuals are computed between
/// rounds alone, so a round should not go far beyond what is needed.
const DEGREE_MAX: u32 = constants::DEGREE_MAX;

/// The partial sums of a sum over a chain: residue m is added to sum m % LANES. The partial sums
/// are added in groups of [`GROUP`].
const LANES: usize = constants::EIGEN_LANES as usize;
const GROUP: usize = 32;

/// Contacts with residues at most this many places away along the chain are added first, as in the
/// kernel, which has them as bits of a mask.
const LOCAL: i64 = 4;

/// A pseudo-random number from 0 to 1, excluding 1, of 24 bits, as in the kernel: the value times
/// the golden ratio, in the steps of MurmurHash3's final mix.
fn random(value: u32) -> f32 {
    let value = value.wrapping_mul(0x9e37_79b9);
    let value = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let value = (value ^ (value >> 13)).wrapping_mul(0xc2b2_ae35);
    ((value ^ (value >> 16)) >> 8) as f32 / 16_777_216.0
}

/// The type that sums over contacts are computed in.
trait Real: From<f32> + AddAssign + Default {
    fn rounded(value: f64) -> Self;
}

impl Real for f32 {
    fn rounded(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn rounded(value: f64) -> Self {
        value
    }
}

/// The contacts of a chain's residues, as indices into the chain.
#[derive(Default)]
pub(super) struct ContactGraph {
    present: Vec<bool>,
    starts: Vec<usize>,
    contacts: Vec<u32>,
    /// Whether a residue has too many contacts for a list.
    crowded: Vec<bool>,
}

impl ContactGraph {
    /// Adds a residue, and its contacts in the order of the list, or in any order if it is crowded.
    /// Puts those up to [`LOCAL`] places away first, ascending: the kernel adds them in this order.
    pub(super) fn push(
        &mut self,
        is_present: bool,
        contacts: impl Iterator<Item = u32> + Clone,
        is_crowded: bool,
    ) {
        let index = self.present.len() as i64;
        let along = |&contact: &u32| i64::from(contact) - index;
        let is_local = |contact: &u32| along(contact).abs() <= LOCAL;
        self.starts.push(self.contacts.len());
        let first = self.contacts.len();
        self.contacts.extend(contacts.clone().filter(is_local));
        self.contacts[first..].sort_unstable();
        self.contacts
            .extend(contacts.filter(|contact| !is_local(contact)));
        self.present.push(is_present);
        self.crowded.push(is_crowded);
    }

    fn contacts(&self, index: usize) -> &[u32] {
        let end = self.starts.get(index + 1).copied();
        &self.contacts[self.starts[index]..end.unwrap_or(self.contacts.len())]
    }

    /// The sums of a residue's contacts in two vectors. Those of a crowded residue are in fixed
    /// point with 40 bits for the vectors' `largest` value, so that the order does not matter.
    fn sum_of_contacts<T: Real>(&self, values: &[[f32; 2]], largest: f32, index: usize) -> [T; 2] {
        let contacts = self.contacts(index);
        if !self.crowded[index] {
            let (mut one, mut two) = (T::default(), T::default());
            for &contact in contacts {
                let value = values[contact as usize];
                one += T::from(value[0]);
                two += T::from(value[1]);
            }
            return [one, two];
        }
        // `largest` is below 2^(exponent - 126), so products with 2^shift are below 2^40.
        let shift = 166 - i64::from(largest.to_bits() >> 23);
        let power_of_two = |exponent: i64| f64::from_bits(((1023 + exponent) as u64) << 52);
        let (whole, part) = (power_of_two(shift), power_of_two(-shift));
        [0, 1].map(|which| {
            let fixed = |&contact: &u32| {
                let value = f64::from(values[contact as usize][which]);
                (value * whole).round_ties_even() as i64
            };
            T::rounded(contacts.iter().map(fixed).sum::<i64>() as f64 * part)
        })
    }

    /// The eigenvector, by at most about `steps` products with the matrix.
    pub(super) fn eigenvector(&self, steps: u32) -> ChainVector {
        if !self.present.contains(&true) {
            return ChainVector {
                vector: vec![f64::NAN; self.present.len()],
                residual: f64::NAN,
            };
        }
        let mut iteration = EigenIteration::new(self);
        iteration.run(steps);
        let has_result = iteration.is_converged && iteration.ritz.is_simple();
        let value = |(x, &is_present): (&[f64; 2], &bool)| {
            if has_result && is_present {
                x[0].abs()
            } else {
                f64::NAN
            }
        };
        ChainVector {
            vector: iteration.x.iter().zip(&self.present).map(value).collect(),
            residual: if iteration.residual < f64::INFINITY {
                iteration.residual
            } else {
                f64::NAN
            },
        }
    }
}

/// The result for a chain: NaN for residues without C-alpha, and for all residues if the two largest
/// eigenvalues are the same or the iteration did not converge. The residual is the length of
/// A v - (v . A v) v, whether v is a result or not, and NaN if no residue has a C-alpha.
pub(super) struct ChainVector {
    pub(super) vector: Vec<f64>,
    pub(super) residual: f64,
}

/// The sums of `terms` of each residue, added in the order of the kernel's block.
fn sums<const N: usize>(count: usize, mut terms: impl FnMut(usize) -> [f64; N]) -> [f64; N] {
    let mut lanes = [[0.0; LANES]; N];
    for m in 0..count {
        for (lanes, term) in lanes.iter_mut().zip(terms(m)) {
            lanes[m % LANES] += term;
        }
    }
    let groups = count.div_ceil(GROUP).min(LANES / GROUP);
    lanes.map(|lanes| {
        let (lanes, _) = lanes.as_chunks::<GROUP>();
        let group = |lanes: &[f64; GROUP]| tree_sum(&mut lanes.clone());
        lanes[..groups]
            .iter()
            .fold(0.0, |sum, lanes| sum + group(lanes))
    })
}

/// Two Ritz values, and the two Ritz vectors as combinations of the vectors.
struct Ritz {
    values: [f64; 2],
    combination: [[f64; 2]; 2],
    /// Whether the second vector was dropped ([`DEPENDENT`]).
    is_single: bool,
}

impl Ritz {
    /// The Rayleigh-Ritz step in the plane of the vectors x, by the sums of x.x and x.Ax.
    fn new([g11, g12, g22, h11, h12, h22]: [f64; 6]) -> Self {
        // Gram and Schmidt: u1 = a x1, u2 = b x1 + c x2. NaN counts as dependent.
        let a = 1.0 / g11.sqrt();
        let along = g12 * a;
        let rest = g22 - along * along;
        if rest.partial_cmp(&(DEPENDENT * g22)) != Some(std::cmp::Ordering::Greater) {
            return Ritz {
                values: [h11 / g11, 0.0],
                combination: [[a, 0.0], [0.0, 0.0]],
                is_single: true,
            };
        }
        let c = 1.0 / rest.sqrt();
        let b = -(along * a) * c;
        let s11 = a * a * h11;
        let s12 = a * (b * h11 + c * h12);
        let s22 = b * b * h11 + 2.0 * b * c * h12 + c * c * h22;
        let (mean, half) = (0.5 * (s11 + s22), 0.5 * (s11 - s22));
        let root = (half * half + s12 * s12).sqrt();
        // The eigenvector of [s11 s12; s12 s22], by the form that subtracts no equal numbers.
        let (y1, y2) = if half < 0.0 {
            (s12, root - half)
        } else {
            (half + root, s12)
        };
        let length = (y1 * y1 + y2 * y2).sqrt();
        let (y1, y2) = if length > 0.0 {
            (y1 / length, y2 / length)
        } else {
            (1.0, 0.0)
        };
        Ritz {
            values: [mean + root, mean - root],
            combination: [[y1 * a + y2 * b, y2 * c], [y1 * b - y2 * a, y1 * c]],
            is_single: false,
        }
    }

    /// Whether the two largest eigenvalues differ.
    fn is_simple(&self) -> bool {
        self.is_single || self.values[0] - self.values[1] > GAP * self.values[0]
    }
}

/// The filter of a round: a Chebyshev polynomial that is small on an interval below the largest Ritz
/// value.
#[derive(Default)]
struct Filter {
    /// The middle of the interval.
    centre: f32,
    /// The largest Ritz value less `centre`, over half the interval.
    tau: f32,
    /// 2 over half the interval.
    scale: f32,
    /// 1 over the largest Ritz value less `centre`.
    first: f32,
    /// The second Ritz value less `centre`.
    offset: f32,
    /// The degree rises until the polynomial damps by this factor.
    gain: f32,
}

/// The iteration for one chain.
struct EigenIteration<'a> {
    graph: &'a ContactGraph,
    is_crowded: bool,
    /// The two vectors that are multiplied with A, and room for the next two.
    now: Vec<[f32; 2]>,
    next: Vec<[f32; 2]>,
    /// The largest absolute value in `now` if a residue is crowded; 0 otherwise.
    largest: f32,
    /// The two vectors x, A x, and the residuals of the Ritz vectors.
    x: Vec<[f64; 2]>,
    image: Vec<[f64; 2]>,
    rest: Vec<[f32; 2]>,
    ritz: Ritz,
    filter: Filter,
    lower: f64,
    residual: f64,
    is_converged: bool,
    is_done: bool,
}

impl<'a> EigenIteration<'a> {
    /// The state before the first step. The iteration begins at numbers that are random but the
    /// same in each run, larger for residues with more contacts, which come nearer to the result.
    fn new(graph: &'a ContactGraph) -> Self {
        let count = graph.present.len();
        let start = |m: usize| {
            let weight = if graph.present[m] {
                1.0 + graph.contacts(m).len() as f32
            } else {
                0.0
            };
            let numbers = [2 * m as u32, 2 * m as u32 + 1].map(random);
            // The first vector is positive, as the result is, and varies less than the weights. The
            // second has both signs, as all other eigenvectors have.
            [
                weight * (4.0 + numbers[0]),
                weight * (2.0 * numbers[1] - 1.0),
            ]
        };
        let mut iteration = EigenIteration {
            graph,
            is_crowded: graph.crowded.contains(&true),
            now: vec![[0.0; 2]; count],
            next: (0..count).map(start).collect(),
            largest: 0.0,
            x: vec![[0.0; 2]; count],
            image: vec![[0.0; 2]; count],
            rest: vec![[0.0; 2]; count],
            // The first step replaces it.
            ritz: Ritz::new([1.0; 6]),
            filter: Filter::default(),
            lower: LOWER,
            residual: f64::INFINITY,
            is_converged: false,
            is_done: false,
        };
        iteration.swap_vectors();
        iteration
    }

    /// Makes the next vectors the current ones.
    fn swap_vectors(&mut self) {
        std::mem::swap(&mut self.now, &mut self.next);
        if self.is_crowded {
            let values = self.now.iter().flatten();
            self.largest = values.fold(0.0, |largest, value| value.abs().max(largest));
        }
    }

    /// Adds the filter's vectors to x, after multiplying the second vector of x by `scale`; then
    /// updates A x and the Ritz values.
    fn add(&mut self, scale: f64) {
        let (graph, now, largest) = (self.graph, &self.now, self.largest);
        let (x, image) = (&mut self.x, &mut self.image);
        self.ritz = Ritz::new(sums(now.len(), |m| {
            let added = graph.sum_of_contacts::<f64>(now, largest, m);
            let change = now[m].map(f64::from);
            let (one, two) = (x[m][0] + change[0], x[m][1] * scale + change[1]);
            let image_one = image[m][0] + added[0];
            let image_two = image[m][1] * scale + added[1];
            (x[m], image[m]) = ([one, two], [image_one, image_two]);
            [
                one * one,
                one * two,
                two * two,
                one * image_one,
                one * image_two,
                two * image_two,
            ]
        }));
    }

    /// Replaces x by the Ritz vectors, whose residuals become the current vectors; then computes A
    /// r of the residuals r, and decides whether the iteration ends.
    fn rotate(&mut self, is_first: bool, is_last: bool) {
        let [by_one, by_two] = self.ritz.combination;
        let [value, second] = self.ritz.values;
        let turned = |v: [f64; 2]| {
            let one = by_one[0] * v[0] + by_one[1] * v[1];
            [one, by_two[0] * v[0] + by_two[1] * v[1]]
        };
        for (m, (x, image)) in self.x.iter_mut().zip(&mut self.image).enumerate() {
            (*x, *image) = (turned(*x), turned(*image));
            let one = (image[0] - value * x[0]) as f32;
            self.rest[m] = [one, (image[1] - second * x[1]) as f32];
        }
        self.next.copy_from_slice(&self.rest);
        self.swap_vectors();
        let (graph, now, next, largest) = (self.graph, &self.now, &mut self.next, self.largest);
        let [squares, slope] = sums(now.len(), |m| {
            next[m] = graph.sum_of_contacts::<f32>(now, largest, m);
            let residual = f64::from(now[m][0]);
            [residual * residual, residual * f64::from(next[m][0])]
        });
        self.set_filter(squares, slope, is_first, is_last);
    }

    /// Decides whether the iteration ends, by the sums of r.r and r.Ar of the residual r, and sets
    /// the next round's filter. Comparisons stand for `min` and `max`, as in the kernel, which make
    /// the bound of NaN.
    fn set_filter(&mut self, squares: f64, slope: f64, is_first: bool, is_last: bool) {
        let [largest, second] = self.ritz.values;
        self.residual = squares.sqrt();
        let quotient = if squares > 0.0 { slope / squares } else { 0.0 };
        if quotient < 0.0 && !is_first {
            self.lower = -1.0;
        }
        let share = if largest > 0.0 {
            quotient / largest
        } else {
            0.0
        };
        let least = if is_first { UPPER_FIRST } else { UPPER_MIN };
        let raised = if share > least { share } else { least };
        let upper = if raised < UPPER_MAX {
            raised
        } else {
            UPPER_MAX
        };
        let by_gap = VECTOR_ERROR * (1.0 - upper);
        let target = if by_gap < RESIDUAL { by_gap } else { RESIDUAL } * largest;
        self.is_converged = self.residual <= target;
        let is_finite = self.residual < f64::INFINITY;
        self.is_done = self.is_converged || is_last || !is_finite;
        let middle = 0.5 * (self.lower + upper) * largest;
        let width = 0.5 * (upper - self.lower) * largest;
        let needed = GAIN_SPARE * self.residual / target;
        let tau = ((largest - middle) / width) as f32;
        let scale = (2.0 / width) as f32;
        self.filter = Filter {
            centre: middle as f32,
            tau,
            scale,
            first: 0.5 * scale / tau,
            offset: (second - middle) as f32,
            gain: if needed < GAIN_MAX { needed } else { GAIN_MAX } as f32,
        };
    }

    /// Applies a Chebyshev polynomial p of A to x. The current vectors then are p(A) x - s x, with
    /// s = 1 for the first vector; s for the second is returned. The number of products with A is
    /// added to `products`.
    fn filter(&mut self, degree_max: u32, products: &mut u32) -> f64 {
        let Filter {
            centre,
            tau,
            scale,
            first,
            offset,
            gain,
        } = self.filter;
        let step = |[a, b, share]: [f32; 3],
                    image: [f32; 2],
                    vector: [f32; 2],
                    rest: [f32; 2],
                    before: [f32; 2]| {
            [
                a * ((image[0] - centre * vector[0]) + rest[0]) - b * before[0],
                a * ((image[1] - centre * vector[1]) + share * rest[1]) - b * before[1],
            ]
        };
        // T_k are Chebyshev polynomials, and p = T_k / T_k(tau) in the interval's units: `sigma` is
        // T_(k-1) / T_k and `growth` T_k, both at tau; `share` is p at the second Ritz value.
        let twice = 2.0 * tau;
        let (mut sigma, mut growth) = (1.0 / tau, tau);
        let (mut share_before, mut share) = (1.0, offset * first);
        let mut degree = 1;
        loop {
            let ratio = twice - sigma;
            let raised = 1.0 / ratio;
            let (a, b) = (scale * raised, sigma * raised);
            (sigma, growth) = (raised, growth * ratio);
            let (graph, rest, largest) = (self.graph, &self.rest, self.largest);
            if degree == 1 {
                for (now, next) in self.now.iter_mut().zip(&mut self.next) {
                    let (residual, image) = (*now, *next);
                    *now = residual.map(|residual| first * residual);
                    let image = image.map(|image| first * image);
                    *next = step([a, b, share], image, *now, residual, [0.0; 2]);
                }
            } else {
                for (m, next) in self.next.iter_mut().enumerate() {
                    let image = graph.sum_of_contacts::<f32>(&self.now, largest, m);
                    *next = step([a, b, share], image, self.now[m], rest[m], *next);
                }
                *products += 1;
            }
            let share_next = a * offset * share - b * share_before;
            (share_before, share) = (share, share_next);
            self.swap_vectors();
            degree += 1;
            let goes_on = degree < degree_max && growth < gain;
            if !goes_on {
                return f64::from(share);
            }
        }
    }

    /// Iterates until the residual is small enough or `steps` products with the graph have been
    /// computed. Filters have a higher degree each time, up to [`DEGREE_MAX`].
    fn run(&mut self, steps: u32) {
        // `add` and `rotate` compute a product each. At first x is 0, and becomes the start vectors.
        self.add(1.0);
        let (mut products, mut degree_max) = (2, DEGREE_FIRST);
        self.rotate(true, products >= steps);
        while !self.is_done {
            let scale = self.filter(degree_max, &mut products);
            self.add(scale);
            products += 2;
            degree_max = (2 * degree_max).min(DEGREE_MAX);
            self.rotate(false, products >= steps);
        }
    }
}
