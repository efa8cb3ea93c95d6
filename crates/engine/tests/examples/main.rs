//! The programs in `examples/` do what they say.

#[path = "../../examples/capi.rs"]
#[allow(unreachable_pub, reason = "a shared library exports it")]
mod capi;
#[path = "../../examples/chain.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod chain;
#[path = "../../examples/http_service.rs"]
#[allow(dead_code, reason = "its main waits for a signal")]
mod http_service;
#[path = "../../examples/image_filter.rs"]
mod image_filter;
#[path = "../../examples/mlp.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod mlp;
#[path = "../../examples/overload.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod overload;
#[path = "../../examples/priorities.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod priorities;
#[path = "../../examples/rebind.rs"]
mod rebind;
#[path = "../../examples/reload.rs"]
#[allow(dead_code, reason = "its main takes arguments")]
mod reload;
#[path = "../../examples/ring.rs"]
mod ring;
#[path = "../../examples/saxpy.rs"]
mod saxpy;
#[path = "../../examples/two_engines.rs"]
#[allow(dead_code, reason = "its main chooses the device")]
mod two_engines;

mod c_host;
mod http;

use std::time::Duration;
use tapeloop_engine::backend::Choice;

#[test]
fn saxpy_is_as_on_the_host() {
    saxpy::main().unwrap();
}

#[test]
fn two_engines_share_a_device_and_both_are_right() {
    assert_eq!(two_engines::run(Choice::Cpu).unwrap(), [20_000, 20_000]);
}

#[test]
fn batches_of_a_ring_are_right() {
    ring::main().unwrap();
}

#[test]
fn a_graph_is_bound_to_other_memory() {
    rebind::main().unwrap();
}

#[test]
fn each_result_is_that_of_one_set_of_weights() {
    let engine = reload::engine().unwrap();
    let every = Some(Duration::from_millis(1));
    let (items, replaced) = reload::run(&engine, Duration::from_millis(200), every).unwrap();
    assert!(items > 0 && replaced > 0, "{items} items, {replaced} times");
}

#[test]
fn decoded_frames_are_right_on_both_ways() {
    for on_device in [false, true] {
        chain::run(Choice::Cpu, 20, on_device).unwrap();
    }
}

#[test]
fn edges_of_images_are_as_on_the_host() {
    image_filter::main().unwrap();
}

#[test]
fn a_network_is_as_on_the_host() {
    mlp::run(8, 2, 1).unwrap();
}

#[test]
fn urgent_items_next_to_others_are_right() {
    priorities::run(Duration::from_millis(20), 2).unwrap();
}

#[test]
fn what_is_offered_beyond_the_capacity_is_refused_and_the_rest_answered() {
    // A minute, so that a busy machine answers what it took before it expires.
    let (time, timeout) = (Duration::from_millis(200), Duration::from_secs(60));
    let outcome = overload::run(Choice::Cpu, time, timeout).unwrap();
    let (in_time, refused) = (outcome.in_time, outcome.refusals.len());
    assert_eq!(in_time + outcome.late + refused, outcome.offered);
    assert!(
        in_time + outcome.late > 0 && outcome.capacity > 0.0,
        "{outcome:?}"
    );
}
