//! Derives the order of commands from the buffers that they use.

use crate::backend::edges::Edges;
use crate::record::{BUFFERS_MAX, Command, Recording};

/// Memory that is declared to the executor counts as one more buffer.
const DECLARED: usize = BUFFERS_MAX;

/// Calls `visit(buffer, writes)` for all memory that a command uses.
fn visit(command: &Command, mut visit: impl FnMut(usize, bool)) {
    command.visit_buffers(|id, _, writes| visit(id.index(), writes));
    if let Some(writes) = command.writes_declared() {
        visit(DECLARED, writes);
    }
}

/// For each of `commands` (ascending indices in the recording), the places in `commands` of the
/// earlier ones that it must run after: it reads what they write, or writes what they read or
/// write. Edges that follow from others are left out.
///
/// For tests of a backend, and unstable like its [contract](crate::backend::contract).
pub fn hazards(recording: &Recording, commands: &[usize]) -> Vec<Vec<usize>> {
    let mut last_write: [Option<usize>; DECLARED + 1] = [None; DECLARED + 1];
    let mut reads_since: Vec<Vec<usize>> = vec![Vec::new(); DECLARED + 1];
    let mut edges = Edges::default();
    for (node, &command) in commands.iter().enumerate() {
        let mut direct = Vec::new();
        visit(&recording.commands()[command], |place, writes| {
            direct.extend(last_write[place]);
            if writes {
                direct.extend(&reads_since[place]);
            }
        });
        edges.add(direct);
        visit(&recording.commands()[command], |place, writes| {
            if writes {
                last_write[place] = Some(node);
                reads_since[place].clear();
            } else {
                reads_since[place].push(node);
            }
        });
    }
    edges.into_after()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Access, Arg, DType, Kernel, Recorder, StructArg};

    #[test]
    fn edges_are_the_hazards_and_no_more() {
        let kernel = Kernel::new("k").reads::<f32>("x").writes::<f32>("y");
        let mut recorder = Recorder::new(&[8]);
        let x = recorder.upload_buffer::<f32>("x", 0, 1);
        let left = recorder.device_buffer::<f32>("left", 0, 1);
        let right = recorder.device_buffer::<f32>("right", 0, 1);
        let y = recorder.download_buffer::<f32>("y", 0, 1);
        let z = recorder.download_buffer::<f32>("z", 0, 1);
        recorder.upload(x); // 0
        recorder.memset(left, 0); // 1
        recorder.launch(&kernel, 1, &[x.into(), left.into()]); // 2
        recorder.launch(&kernel, 1, &[x.into(), right.into()]); // 3
        recorder.launch(&kernel, 1, &[left.into(), y.into()]); // 4
        recorder.launch(&kernel, 1, &[right.into(), left.into()]); // 5
        recorder.launch(&kernel, 1, &[Arg::from(left), z.into()]); // 6
        recorder.download(y); // 7
        recorder.download(z); // 8
        let recording = recorder.finish().unwrap();
        let all: Vec<usize> = (0..9).collect();
        let expected: [&[usize]; 9] = [&[], &[], &[0, 1], &[0], &[2], &[3, 4], &[5], &[4], &[6]];
        assert_eq!(hazards(&recording, &all), expected);
        // The same dependences without the copies, by the new indices.
        let expected: [&[usize]; 6] = [&[], &[0], &[], &[1], &[2, 3], &[4]];
        assert_eq!(hazards(&recording, &all[1..7]), expected);
    }

    #[test]
    fn buffers_in_structs_and_declared_memory_are_hazards_too() {
        let pointer = |access| [(0, access, DType::F32)];
        let reads = Kernel::new("r").structure("s", 8, &pointer(Access::Read));
        let writes = Kernel::new("w").structure("s", 8, &pointer(Access::Write));
        let follows = Kernel::new("f").follows_device_pointers();
        let to = |address| Arg::from(StructArg::of_address(address));
        let mut recorder = Recorder::new(&[8]);
        let buffer = recorder.batch_buffer::<f32>("own", 1);
        let buffer = || Arg::from(StructArg::new(&[0; 8]).buffer(buffer));
        recorder.launch(&writes, 1, &[buffer()]); // 0
        recorder.launch(&reads, 1, &[buffer()]); // 1
        recorder.launch(&reads, 1, &[to(64)]); // 2
        recorder.launch(&writes, 1, &[to(128)]); // 3
        recorder.launch(&writes, 1, &[buffer()]); // 4
        recorder.launch(&follows, 1, &[]); // 5
        let recording = recorder.finish().unwrap();
        let all: Vec<usize> = (0..6).collect();
        let expected: [&[usize]; 6] = [&[], &[0], &[], &[2], &[1], &[3]];
        assert_eq!(hazards(&recording, &all), expected);
    }
}
