//! What an audit reports; what it finds is among the scenarios of every backend.

use crate::gather::Gather;
use std::sync::Arc;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::replay::Policy;

#[test]
fn an_audit_lists_what_it_saw_and_what_it_cannot_see() {
    let gather = Gather::following();
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    let policy = Policy {
        warm_up: false,
        ..Policy::default()
    };
    let mut slot = gather.slot(&backend, &policy);
    assert_eq!(slot.executor.audit(0), None);
    slot.run(&gather, 1.0);
    let audit = slot.executor.audit(0).unwrap();
    assert_eq!((audit.operations, audit.addresses), (3, 7));
    assert_eq!(audit.out_of_reach, ["gather"]);
    assert_eq!(slot.executor.audit(1), None);
}
