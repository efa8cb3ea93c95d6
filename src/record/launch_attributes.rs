//! How a device schedules the thread blocks of a kernel's launches.

use super::kernel::{DeviceCode, Kernel};
use super::shape::Shape;
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
}

impl LaunchAttributes {
    /// A plain launch.
    pub(crate) const NONE: LaunchAttributes = LaunchAttributes {
        cluster: None,
        is_cooperative: false,
        is_urgent: false,
    };

    /// Refuses a grid that is not made of whole clusters.
    pub(crate) fn check_grid(self, grid: [u32; 3]) -> Result<()> {
        let Some(cluster) = self.cluster else {
            return Ok(());
        };
        let mut sides = grid.iter().zip(cluster);
        match sides.all(|(&blocks, side)| blocks.is_multiple_of(side)) {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "a grid of {grid:?} thread blocks in clusters of {cluster:?}"
            ))
            .fix("let each side of the grid be a multiple of the cluster's")),
        }
    }
}

impl Kernel {
    /// Refuses attributes of a library call, clusters that no device runs, and a launch whose blocks
    /// do not fill clusters.
    pub(super) fn check_attributes(&self, shape: Shape) -> Result<()> {
        let attributes = self.attributes;
        let is_library_call = matches!(self.code, Some(DeviceCode::Library(_)));
        if is_library_call && attributes != LaunchAttributes::NONE {
            return Err(Error::usage(
                "a library call is declared with attributes of a launch, which the library chooses",
            )
            .fix("leave out Kernel::cluster, Kernel::cooperative and Kernel::urgent"));
        }
        let Some(cluster) = attributes.cluster else {
            return Ok(());
        };
        let blocks = (cluster.iter()).try_fold(1, |blocks: u32, &side| blocks.checked_mul(side));
        if !blocks.is_some_and(|blocks| (1..=CLUSTER_BLOCKS_MAX).contains(&blocks)) {
            return Err(Error::usage(format!(
                "clusters of {cluster:?} thread blocks; a cluster has at least 1 and at most \
                 {CLUSTER_BLOCKS_MAX}"
            )));
        }
        match shape {
            Shape::Grid(grid) => attributes.check_grid(grid),
            Shape::Over { .. } => Err(Error::usage(
                "a launch over elements has no clusters, as the device chooses its blocks",
            )
            .fix("launch the kernel with a grid, as Recorder::launch_grid does")),
        }
    }

    /// Groups the thread blocks of each launch into clusters, so many along x, y and z and at most 8
    /// in all. The blocks of a cluster run at once and can read each other's shared memory (CUDA C++
    /// Programming Guide, "Thread Block Clusters"). A GPU needs compute capability 9.0 for it; CPU
    /// twins take no notice. Launches must be made of whole clusters.
    ///
    /// A kernel whose text has `__cluster_dims__` needs no declaration.
    ///
    /// ```
    /// use tapeloop::{Image, Kernel, Recorder};
    ///
    /// const TEXT: &str = r#"
    /// // Each pair of thread blocks exchanges what their first threads read.
    /// extern "C" __global__ void exchange(const unsigned* x, unsigned* y)
    /// {
    ///     __shared__ unsigned mine;
    ///     mine = x[blockIdx.x];
    ///     asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    ///     unsigned address = __cvta_generic_to_shared(&mine), value;
    ///     asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(blockIdx.x % 2 ^ 1));
    ///     asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    ///     y[blockIdx.x] = value;
    ///     asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    /// }"#;
    ///
    /// let kernel = Kernel::declared_in(TEXT, "exchange")?;
    /// let kernel = kernel.block(1).cluster([2, 1, 1]);
    /// // SAFETY: each block touches one element, and the grid has as many blocks as both have elements.
    /// let kernel = unsafe { kernel.code(&Image::cuda("exchange.cu", TEXT)) };
    /// let mut recorder = Recorder::new(&[64]);
    /// let x = recorder.upload_buffer::<u32>("x", 0, 1);
    /// let y = recorder.download_buffer::<u32>("y", 0, 1);
    /// recorder.upload(x);
    /// recorder.launch(&kernel, 64, &[x.into(), y.into()]);
    /// recorder.download(y);
    /// recorder.finish()?;
    /// # Ok::<(), tapeloop::Error>(())
    /// ```
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn cluster(mut self, blocks: [u32; 3]) -> Self {
        self.expect_open();
        self.attributes.cluster = Some(blocks);
        self
    }

    /// Declares that all thread blocks of a launch have to run at once, so that they may wait for each
    /// other (CUDA C++ Programming Guide, "Grid Synchronization"). A device refuses a launch of more
    /// blocks than it runs at once; [`Recorder::launch_over`](super::Recorder::launch_over) with
    /// [`Cover::Strided`](super::Cover::Strided) never has more. CPU twins take no notice.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        self.expect_open();
        self.attributes.is_cooperative = true;
        self
    }

    /// Lets the device start thread blocks of this kernel before those of kernels that do not declare
    /// it, wherever blocks wait for a free multiprocessor. So the kernels on a recording's longest path
    /// do not wait for those beside it. In slots for urgent batches all kernels have that priority
    /// anyway. A loop on the device has no priorities, so such a kernel cannot run in
    /// [`Mode::Resident`](crate::replay::Mode::Resident). CPU twins take no notice.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn urgent(mut self) -> Self {
        self.expect_open();
        self.attributes.is_urgent = true;
        self
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
            assert!(refused.contains("at least 1 and at most 8"), "{refused}");
        }
        let refused = grid([2, 1, 1], [5, 1, 1]).unwrap_err();
        assert!(refused.contains("a grid of [5, 1, 1] thread blocks in clusters of [2, 1, 1]"));
        let over = record(Kernel::new("k").cluster([2, 1, 1]), |recorder, kernel| {
            recorder.launch_over(kernel, 16, Cover::Once, &[]);
        });
        assert!(over.unwrap_err().contains("a launch over elements has no clusters"));
    }
}
