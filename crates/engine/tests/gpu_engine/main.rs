//! The engine, the pipeline, the ring and the memory pool on a real device, against the CPU's
//! bytes. A process of its own, and one test at a time: they look at times and at the memory of
//! the process and of the card.
//!
//! Most tests run on the CPU backend and on the simulated device as well, so that a mistake in
//! them shows without a card. Those on the card are ignored without
//! `--include-ignored`.

#[cfg(feature = "cuda")]
#[path = "../support/gpu.rs"]
mod gpu;
use tapeloop_test_support::mix;
#[cfg(feature = "cuda")]
#[path = "../support/primary_context.rs"]
mod primary_context;
use tapeloop_test_support::seeds;
#[cfg(feature = "cuda")]
use tapeloop_test_support::sevenfold;

mod attributes;
#[cfg(feature = "cuda")]
mod batch;
#[cfg(feature = "cuda")]
mod bench;
mod bytes;
#[cfg(feature = "cuda")]
mod conformance;
#[cfg(feature = "cuda")]
mod events;
mod fork;
mod fronts;
mod library_calls;
mod live;
mod memory;
#[cfg(feature = "cuda")]
mod resident;
mod resident_buffers;
mod sampled;
mod steady;
mod target;
#[cfg(feature = "cuda")]
mod timestamps;

/// Each test on every kind of device.
macro_rules! on_every_device {
    ($($file:ident::$name:ident),* $(,)?) => {
        mod on_the_cpu {
            $(#[test]
            fn $name() {
                let target = crate::target::cpu();
                crate::$file::$name(&target);
                target.finish();
            })*
        }

        mod simulated {
            $(#[test]
            fn $name() {
                let target = crate::target::simulated();
                crate::$file::$name(&target);
                target.finish();
            })*
        }

        #[cfg(feature = "cuda")]
        mod on_the_card {
            $(#[test]
            #[ignore = "needs a CUDA device"]
            fn $name() {
                let target = crate::target::card();
                crate::$file::$name(&target);
                target.finish();
            })*
        }
    };
}

on_every_device! {
    steady::a_long_run_of_replays_is_eager_to_the_byte_and_takes_nothing,
    steady::a_long_run_of_items_takes_nothing,
    steady::items_that_are_cancelled_take_nothing,
    bytes::urgent_batches_give_the_bytes_of_the_cpu,
    bytes::every_policy_gives_the_bytes_of_the_cpu,
    bytes::buckets_come_and_go_beside_batches_in_flight,
    fronts::two_engines_at_once_with_two_producers_each,
    fronts::items_come_from_a_thread_of_their_own_each,
    fronts::an_engine_dropped_in_mid_flight_answers_every_ticket,
    fronts::an_engine_that_is_left_behind_ends_its_threads,
    fronts::a_pipeline_dropped_in_mid_flight_gives_everything_back,
    sampled::every_sampled_batch_is_right_and_in_its_time,
    live::uniforms_change_together_under_a_running_engine,
    live::an_item_has_the_uniforms_of_its_submission,
    live::a_batch_has_the_uniforms_of_its_items_in_a_pipeline,
    fork::a_child_refuses_every_call_and_forgets_what_it_drops,
    resident_buffers::every_batch_reads_the_same_weights,
    resident_buffers::an_item_has_the_weights_of_its_submission,
    resident_buffers::weights_are_replaced_under_load,
    resident_buffers::batches_of_one_slot_update_a_sum_in_order,
    resident_buffers::a_ring_reads_weights_of_a_pool,
    resident_buffers::an_engine_without_its_weights_is_not_built,
    attributes::blocks_exchange_numbers_and_wait_for_each_other,
    library_calls::the_work_of_a_library_is_replayed_in_its_place,
    library_calls::a_graph_that_is_made_calls_no_library,
    library_calls::a_library_call_is_captured_again_for_other_memory,
    library_calls::a_library_call_reads_what_was_replaced,
    library_calls::a_warm_up_runs_outside_of_a_capture,
    library_calls::a_library_call_that_fails_is_an_error_with_the_kernel,
    memory::a_plan_is_what_the_device_loses_and_not_a_byte_less_will_do,
    memory::a_pool_copies_in_every_direction,
    memory::a_pool_keeps_count_and_gives_memory_back,
}

/// The card behind a worker process, which is this program started again.
#[cfg(all(feature = "cuda", feature = "supervise", target_os = "linux"))]
mod on_the_supervised_card {
    use tapeloop_engine::backend::worker::serve;

    #[test]
    fn serve_as_worker() {
        if std::env::var_os(crate::target::WORKER).is_some() {
            // SAFETY: `supervised_card` started the program.
            unsafe { serve::<&str>(&[]) }.unwrap();
        }
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn blocks_exchange_numbers_and_wait_for_each_other() {
        let target = crate::target::supervised_card();
        crate::attributes::blocks_exchange_numbers_and_wait_for_each_other(&target);
        target.finish();
    }
}
