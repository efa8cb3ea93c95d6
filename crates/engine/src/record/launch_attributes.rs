//! How a device schedules the thread blocks of a kernel's launches.

use crate::error::{Error, Result};

/// The most thread blocks of a cluster that every device with clusters runs.
const CLUSTER_BLOCKS_MAX: u32 = 8;

/// What a kernel asks of the device for each of its launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct LaunchAttributes {
    /// The thread blocks of a cluster along x, y and z; `None` for launches without clusters.
    pub(crate) cluster: Option<[u32; 3]>,
    /// Whether all blocks of a launch run at once.
    pub(crate) is_cooperative: bool,
    /// Whether its blocks start before those of other kernels.
    pub(crate) is_urgent: bool,
    /// Whether its code waits for the work that it runs after, before it accesses memory.
    pub(crate) waits_for_dependencies: bool,
}

impl LaunchAttributes {
    /// A plain launch.
    pub(crate) const NONE: LaunchAttributes = LaunchAttributes {
        cluster: None,
        is_cooperative: false,
        is_urgent: false,
        waits_for_dependencies: false,
    };

    /// What a drawing says of a launch with these attributes. It leaves out the wait, which changes
    /// no order.
    pub(crate) fn names(self) -> impl Iterator<Item = String> {
        let clusters = self
            .cluster
            .map(|[x, y, z]| format!("clusters of {x} x {y} x {z}"));
        let cooperative = self.is_cooperative.then(|| "cooperative".to_owned());
        let urgent = self.is_urgent.then(|| "urgent".to_owned());
        [clusters, cooperative, urgent].into_iter().flatten()
    }

    /// Refuses clusters that no device runs, and a grid that is not made of whole ones. The error
    /// is of [`ErrorKind::Usage`](crate::ErrorKind::Usage), here and below.
    pub(crate) fn check_grid(self, grid: [u32; 3]) -> Result<()> {
        let Some(cluster) = self.cluster else {
            return Ok(());
        };
        let blocks = (cluster.iter()).try_fold(1, |blocks: u32, &side| blocks.checked_mul(side));
        if !blocks.is_some_and(|blocks| (1..=CLUSTER_BLOCKS_MAX).contains(&blocks)) {
            return Err(Error::usage(format!(
                "clusters of {cluster:?} thread blocks; a cluster has at least 1 and at most \
                 {CLUSTER_BLOCKS_MAX}"
            )));
        }
        let mut sides = grid.iter().zip(cluster);
        if sides.all(|(&blocks, side)| blocks.is_multiple_of(side)) {
            Ok(())
        } else {
            Err(Error::usage(format!(
            "a grid of {grid:?} thread blocks, which is not made of whole clusters of {cluster:?}"
        ))
        .fix("let each side of the grid be a multiple of the cluster's"))
        }
    }

    /// Refuses attributes that a launch over elements does not have.
    pub(super) fn check_over_elements(self) -> Result<()> {
        match self.cluster {
            None => Ok(()),
            Some(_) => Err(Error::usage(
                "a launch over elements has no clusters, as the device chooses its blocks",
            )
            .fix("launch the kernel with a grid, as Recorder::launch_grid does")),
        }
    }

    /// Refuses attributes of a library call.
    pub(super) fn check_library_call(self) -> Result<()> {
        if self == LaunchAttributes::NONE {
            Ok(())
        } else {
            Err(Error::usage(
                "a library call is declared with attributes of a launch, which the library chooses",
            )
            .fix(
                "leave out Kernel::cluster, Kernel::cooperative, Kernel::urgent and \
                 Kernel::waits_for_dependencies",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::{Cover, Kernel, Recorder, TwinLaunch};

    fn nothing(_: &mut TwinLaunch<'_>) {}

    fn record(kernel: Kernel, launch: impl FnOnce(&mut Recorder, &Kernel)) -> Result<(), String> {
        let mut recorder = Recorder::new(&[16]);
        launch(&mut recorder, &kernel.twin(nothing));
        let finished = recorder.finish();
        finished.map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn clusters_are_whole_and_of_at_most_eight_blocks() {
        let grid = |cluster, grid| {
            record(Kernel::new("k").cluster(cluster), |recorder, kernel| {
                recorder.launch_grid(kernel, grid, &[]);
            })
        };
        assert_eq!(grid([2, 2, 2], [4, 2, 6]), Ok(()));
        assert_eq!(grid([1, 1, 1], [3, 5, 7]), Ok(()));
        for cluster in [[0, 1, 1], [9, 1, 1], [2, 2, 3], [1 << 16, 1 << 16, 1]] {
            let refused = grid(cluster, [1 << 16, 1, 1]).unwrap_err();
            assert!(refused.contains("at most 8"), "{refused}");
        }
        let refused = grid([2, 1, 1], [5, 1, 1]).unwrap_err();
        assert!(refused.contains("whole clusters of [2, 1, 1]"));
        let over = record(Kernel::new("k").cluster([2, 1, 1]), |recorder, kernel| {
            recorder.launch_over(kernel, 16, Cover::Once, &[]);
        });
        assert!(over.unwrap_err().contains("over elements"));
    }
}
