//! An engine that sleeps is flagged. The test has its own process, since the processor time of the
//! whole process is measured.

use tapeloop_conformance::forward;
#[path = "support/measured.rs"]
mod measured;
use tapeloop_conformance::tamper;

use measured::{figures, measure, session, small};
use std::sync::Arc;
use std::time::Duration;
use tamper::Tamper;
use tapeloop_bench::point::{Front, Point};

#[test]
fn an_engine_that_sleeps_is_flagged() {
    let tamper = Arc::new(Tamper::default());
    let mut session = session(&tamper);
    let awake = figures(&measure(&mut session, &[small()])[0]).busy;
    tamper.sleep(Duration::from_millis(2));
    for front in [Front::Ring, Front::Pipeline] {
        let records = measure(&mut session, &[Point { front, ..small() }]);
        let asleep = figures(&records[0]);
        assert!(asleep.busy < 0.5 * awake, "{} of {awake}", asleep.busy);
        let said = asleep.flags.iter().any(|flag| flag.contains("it slept"));
        assert!(said, "{:?}", asleep.flags);
    }
}
