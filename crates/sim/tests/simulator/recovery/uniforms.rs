//! Uniforms of items that run again after a loss.

use super::*;
use crate::mix::{self, Mix, UNIFORMS};

#[test]
fn an_item_that_runs_again_has_the_uniforms_of_its_submission() {
    let policies = policies();
    each_seed(500, |seed| {
        let mut random = Random::new(seed);
        let policy = policies[seed as usize % policies.len()];
        // Several losses in a row cut a batch in halves.
        let first = random.below(60) as u64;
        let losses = 0..1 + random.below(4) as u64;
        let faults = losses.map(|loss| Fault::Kernel {
            launch: first + loss,
        });
        let (sim, backend) = supervised(seed, faults.collect());
        let config = config(&mut random, policy);
        let Ok(engine) = Engine::new(Mix::new(), &[backend], pool(), &config) else {
            return;
        };
        let mut uniforms = UNIFORMS;
        let mut tickets = Vec::new();
        for item in mix::items(30, 20) {
            if random.below(4) == 0 {
                uniforms = (random.below(100) as f32, random.next() as u32);
                let (factor, salt) = uniforms;
                let set = engine.set_uniforms(|uniforms| {
                    uniforms.set("factor", factor)?;
                    uniforms.set("salt", salt)
                });
                set.unwrap();
            }
            let expected = item.output(uniforms);
            tickets.push((engine.submit(item).unwrap(), expected));
        }
        engine.flush().unwrap();
        for (ticket, expected) in tickets {
            match ticket.wait().unwrap().result {
                Ok(output) => assert_eq!(output, expected),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Quarantined, "{error}"),
            }
        }
        drop(engine);
        assert_clean(&sim);
    });
}
