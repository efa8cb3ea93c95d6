//! The tests that every backend of `tapeloop-engine` passes, for authors of a backend.
//!
//! A *scenario* is a public function of one of the groups below. It takes one open [`Backend`], does
//! something with it, and panics if the backend breaks the
//! [contract](tapeloop_engine::backend::contract).
//!
//! # How to run them
//!
//! An author writes one function that opens a backend and passes it to a scenario. [`tests!`] makes a
//! test of each scenario:
//!
//! ```
//! use std::sync::Arc;
//! use tapeloop_conformance::Scenario;
//! use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
//!
//! fn on_the_cpu(scenario: Scenario) {
//!     let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
//!     scenario(&backend);
//! }
//!
//! tapeloop_conformance::tests!(on_the_cpu);
//! # on_the_cpu(tapeloop_conformance::slots::host_memory_is_closed_until_its_work_is_seen_done);
//! ```
//!
//! The function may open several backends, one after the other, such as one for each seed of a
//! simulated device, and check afterwards that nothing is left over. An attribute in front of it is
//! given to every test, so that tests which need a device are left to the machines that have one:
//!
//! ```
//! # use tapeloop_conformance::Scenario;
//! # fn on_the_card(_: Scenario) {}
//! tapeloop_conformance::tests!(#[ignore = "needs a CUDA device"] on_the_card);
//! ```
//!
//! # What they check
//!
//! | group | of a backend | the contract's |
//! |---|---|---|
//! | [`slots`] | results are right under every policy; slots work at the same time, on any thread, and may be dropped in flight; foreign memory is refused | order of work |
//! | [`graphs`] | graphs hold and do what they were given, also after each kind of update | `make_graph`, `set_params`, `graph_ops` |
//! | [`allocations`] | copies; the host and the device use memory in turn; graphs keep the memory that they use | `adopt`, leases |
//! | [`audit`] | what the engine's audit reads back, and pointers in structs | `graph_ops` |
//! | [`verify`] | a batch may run twice, as launches and as a graph, with the same inputs | order of work |
//! | [`timestamps`] | times of batches, which cost nothing unless asked for | `timestamps` |
//! | [`leases`] | results that borrow the memory of a slot stay as they are | `host`, dropping slots |
//! | [`device_data`] | batches are copied from device memory in the order of work, and results stay there | `adopt`, leases, `Op::Copy` |
//! | [`loops`] | graphs that a loop on the device replays, or the refusal | `make_resident` |
//! | [`recovery`] | a supervised device that is lost comes back with everything that it had | `revive` |
//!
//! # What is optional
//!
//! A scenario asks the backend, and never its name. It checks the documented refusal of a backend that
//! does not offer something:
//!
//! | part | how a scenario finds out | without it |
//! |---|---|---|
//! | separate memory | [`DeviceInfo::shares_host_memory`] is false | no copies; the first batch is not verified |
//! | loops | [`DeviceSlot::make_resident`] returns true ([`program::loops`]) | it returns false, or refuses by [`ErrorKind::Unavailable`]; then policies of that mode are left out |
//! | supervision | [`Backend::is_supervised`] | [`Backend::revive`] may fail; faults are not provoked |
//! | allocations | the backend is not supervised | [`Backend::allocate`] fails; [`Backend::allocate_filled`] is still there |
//! | times of a GPU | [`DeviceInfo::compute_capability`] is given | timestamps ascend, without a tolerance |
//!
//! # Kernels
//!
//! Each kernel has CUDA text and a CPU twin that computes the same bits. A backend that starts
//! processes for twins gets their table from [`twins`]. A backend of another kind of device knows the
//! kernels by the names in that table.
//!
//! [`DeviceInfo::shares_host_memory`]: tapeloop_engine::DeviceInfo::shares_host_memory
//! [`DeviceInfo::compute_capability`]: tapeloop_engine::DeviceInfo::compute_capability
//! [`DeviceSlot::make_resident`]: tapeloop_engine::backend::contract::DeviceSlot::make_resident
//! [`ErrorKind::Unavailable`]: tapeloop_engine::ErrorKind::Unavailable

pub mod allocations;
pub mod audit;
pub mod chained;
pub mod device_data;
pub mod forward;
pub mod gather;
pub mod give;
pub mod graphs;
pub mod leases;
pub mod leasing;
pub mod lookup;
pub mod loops;
pub mod program;
pub mod recovery;
pub mod scale;
pub mod slots;
pub mod tamper;
pub mod timestamps;
pub mod verify;

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tapeloop_engine::backend::Backend;
use tapeloop_engine::record::Twin;
use tapeloop_engine::{Error, ErrorKind};

/// What is done with a backend, and what must hold of it.
pub type Scenario = fn(&Arc<dyn Backend>);

/// The CPU twins of all kernels, by the kernel's name.
pub fn twins() -> Vec<(&'static str, Twin)> {
    [
        &program::TWINS[..],
        &gather::TWINS,
        &lookup::TWINS,
        &scale::TWINS,
        &verify::TWINS,
    ]
    .concat()
}

/// A pool of threads for an engine.
fn threads(count: usize) -> Arc<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(count).build();
    Arc::new(pool.expect("the system starts threads"))
}

/// Panics unless the error is of this kind and its text, with its places, has all `parts`, in any order.
fn assert_refused(error: &Error, kind: ErrorKind, parts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

/// Makes a test of each scenario, in a module of its group, from a function that opens a backend and
/// runs one scenario. An attribute in front of the function is given to each test. See the
/// [crate](crate#how-to-run-them).
#[macro_export]
macro_rules! tests {
    ($(#[$attribute:meta])* $run:path) => {
        $crate::scenarios! { @groups [$(#[$attribute])*] $run }
    };
}

/// The list of scenarios.
#[doc(hidden)]
#[macro_export]
macro_rules! scenarios {
    (@groups $attributes:tt $run:path) => {
        $crate::scenarios! { @group $attributes $run, slots:
            every_policy_gives_the_right_results,
            batches_run_in_the_order_in_which_they_were_given,
            host_memory_is_closed_until_its_work_is_seen_done,
            buffers_of_two_recordings_are_not_borrowed_together,
            memory_that_a_slot_does_not_own_is_refused,
            slots_work_at_the_same_time_and_move_between_threads,
            slots_may_be_dropped_with_work_in_flight,
        }
        $crate::scenarios! { @group $attributes $run, graphs:
            a_graph_holds_and_does_what_it_was_given,
            a_refused_change_leaves_a_graph_as_it_was,
            what_a_graph_holds_follows_its_updates,
            every_kind_of_update_changes_what_was_asked_and_nothing_else,
        }
        $crate::scenarios! { @group $attributes $run, allocations:
            parts_of_allocations_are_copied_and_the_rest_is_left,
            guards_and_copies_exclude_each_other,
            only_adopted_memory_may_be_addressed,
            the_host_and_the_device_use_memory_in_turn,
            work_on_memory_that_the_host_holds_is_refused_and_the_slot_goes_on,
            slots_read_an_allocation_together_and_write_it_alone,
            a_graph_keeps_allocations_whose_handles_are_dropped,
            a_dropped_slot_gives_its_allocations_back,
        }
        $crate::scenarios! { @group $attributes $run, audit:
            a_struct_brings_values_buffers_and_declared_memory_to_its_kernel,
            a_graph_holds_allocations_that_were_declared_after_it_was_made,
            a_graph_that_holds_something_else_is_refused_by_name,
            an_update_that_leaves_something_else_is_refused_and_the_graph_is_made_again,
            an_undeclared_pointer_is_refused_before_any_work_is_given,
            a_pointer_to_withdrawn_memory_is_refused,
            an_update_is_audited_before_the_device_is_called,
            a_struct_changes_by_every_kind_of_update,
        }
        $crate::scenarios! { @group $attributes $run, verify:
            results_that_change_from_run_to_run_are_caught_by_the_first_batch_that_is_compared,
            results_that_depend_on_the_order_of_threads_are_caught,
            a_graph_that_does_something_else_than_it_holds_is_caught,
            elements_beyond_the_batch_may_differ,
            inputs_that_kernels_change_are_restored,
            a_batch_that_changes_an_input_uploaded_in_part_runs_once,
            leftovers_of_an_earlier_batch_are_no_difference,
            kernels_that_write_declared_memory_run_once,
            the_first_batch_of_each_bucket_runs_twice_and_later_ones_cost_nothing,
        }
        $crate::scenarios! { @group $attributes $run, timestamps:
            timed_batches_are_right_and_their_times_ascend,
            timed_batches_of_a_loop_need_no_graph_and_no_call,
            timed_launches_copy_what_the_batch_uses,
            without_timed_batches_nothing_is_timed,
            a_graph_reads_its_timestamps_back_and_takes_others,
            a_timestamp_that_no_slot_has_is_refused,
        }
        $crate::scenarios! { @group $attributes $run, leases:
            results_stay_as_they_are_while_later_batches_run,
            a_slot_is_lent_again_when_its_results_are_dropped,
            results_outlive_their_engine_and_go_to_other_threads,
            an_engine_and_the_results_that_it_lent_are_dropped_at_once,
            many_threads_hold_and_drop_results_of_large_and_small_batches,
        }
        $crate::scenarios! { @group $attributes $run, device_data:
            one_engine_takes_what_another_left_on_the_device,
            kept_results_stay_as_they_are,
            a_pipeline_chains_on_the_device,
            an_item_with_wrong_memory_is_refused_alone,
            a_buffer_of_a_pool_is_taken_and_written_in_turn,
        }
        $crate::scenarios! { @group $attributes $run, loops:
            mode_resident_is_right_or_refused_and_launches_take_its_place,
            other_bindings_make_another_loop,
            threads_and_buckets_share_loops,
        }
        $crate::scenarios! { @group $attributes $run, recovery:
            a_device_that_was_not_lost_is_not_started_again,
            memory_that_would_be_lost_is_refused,
            one_item_that_faults_is_named_and_no_other_is_lost,
            batches_read_the_same_table_after_a_fault,
            a_table_is_replaced_and_stays_so_after_a_fault,
            results_that_are_held_stay_right_after_a_fault,
        }
    };
    (@group $attributes:tt $run:path, $group:ident: $($name:ident),* $(,)?) => {
        mod $group {
            #[allow(unused_imports, reason = "the function may be named by its full path")]
            use super::*;
            $($crate::scenarios! { @test $attributes $run, $group, $name })*
        }
    };
    (@test [$($attribute:tt)*] $run:path, $group:ident, $name:ident) => {
        #[test]
        $($attribute)*
        fn $name() {
            $run($crate::$group::$name);
        }
    };
}
