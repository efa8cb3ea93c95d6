//! Launch attributes as the driver takes them.

use super::context::PrimaryContext;
use super::stream::greatest_priority;
use crate::backend::Call;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Kernel, LaunchAttributes};
use arrayvec::ArrayVec;
use cudarc::driver::sys::{
    CUdevice_attribute, CUgraphNode, CUlaunchAttribute, CUlaunchAttributeID as Id,
    CUlaunchAttributeValue,
};
use std::ffi::c_int;

/// The compute capability from which devices have clusters of thread blocks.
const CLUSTERS_SINCE: (u32, u32) = (9, 0);

/// The most attributes of a launch: a cluster, cooperative, a priority, and an early start.
const ATTRIBUTES_MAX: usize = 4;

const EMPTY: CUlaunchAttributeValue = CUlaunchAttributeValue { pad: [0; 64] };

/// The launch attributes of a kernel.
#[derive(Clone, Copy)]
pub(super) struct DriverAttributes {
    pub(super) declared: LaunchAttributes,
    /// The priority of an urgent kernel.
    priority: c_int,
}

impl DriverAttributes {
    /// The attributes that a kernel declares.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for one that the device does not have.
    pub(super) fn new(context: &PrimaryContext, kernel: &Kernel) -> Result<Self> {
        let (declared, device) = (kernel.attributes, context.device);
        if declared.cluster.is_some() && device.capability() < CLUSTERS_SINCE {
            return Err(missing_feature_error(
                context,
                kernel,
                "clusters of thread blocks",
            ));
        }
        let cooperative = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH;
        if declared.is_cooperative && device.attribute(cooperative) == 0 {
            return Err(missing_feature_error(
                context,
                kernel,
                "cooperative launches",
            ));
        }
        let priority = if declared.is_urgent {
            greatest_priority(context)?
        } else {
            0
        };
        Ok(DriverAttributes { declared, priority })
    }

    /// The attributes as the driver takes them.
    pub(super) fn list(&self) -> ArrayVec<CUlaunchAttribute, ATTRIBUTES_MAX> {
        let mut list = ArrayVec::new();
        let mut add = |id, fill: &dyn Fn(&mut CUlaunchAttributeValue)| {
            let (pad, mut value) = ([0; 4], EMPTY);
            fill(&mut value);
            list.push(CUlaunchAttribute { id, pad, value });
        };
        if let Some([x, y, z]) = self.declared.cluster {
            add(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &|value| {
                // SAFETY: the fields are integers, and all bytes of `EMPTY` are initialised.
                let cluster = unsafe { &mut value.clusterDim };
                (cluster.x, cluster.y, cluster.z) = (x, y, z);
            });
        }
        if self.declared.is_cooperative {
            add(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &|value| {
                value.cooperative = 1;
            });
        }
        if self.declared.is_urgent {
            add(Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, &|value| {
                value.priority = self.priority;
            });
        }
        list
    }

    /// The attributes of a launch into a stream, which `starts_early`: before the launch before it has
    /// ended. In a graph, an edge says the same.
    pub(super) fn list_in_stream(
        &self,
        starts_early: bool,
    ) -> ArrayVec<CUlaunchAttribute, ATTRIBUTES_MAX> {
        let mut list = self.list();
        if starts_early {
            let (id, pad) = (
                Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                [0; 4],
            );
            let mut value = EMPTY;
            value.programmaticStreamSerializationAllowed = 1;
            list.push(CUlaunchAttribute { id, pad, value });
        }
        list
    }

    /// Gives them to a kernel's node.
    ///
    /// # Safety
    /// `node` must be alive, and a kernel's.
    pub(super) unsafe fn give_to(&self, context: &PrimaryContext, node: CUgraphNode) -> Result<()> {
        for attribute in self.list() {
            let driver = context.bind_for(Call::GraphEdit)?;
            // SAFETY: the value outlives the call; the node is the caller's promise.
            context.check("cuGraphKernelNodeSetAttribute", unsafe {
                (driver.cuGraphKernelNodeSetAttribute)(node, attribute.id, &attribute.value)
            })?;
        }
        Ok(())
    }

    /// Whether a kernel's node has them. Others are not looked at, as nothing gives a node any that
    /// its kernel does not declare.
    ///
    /// # Safety
    /// `node` must be alive, and a kernel's.
    pub(super) unsafe fn are_of(
        &self,
        context: &PrimaryContext,
        node: CUgraphNode,
    ) -> Result<bool> {
        let driver = context.bind()?;
        for attribute in self.list() {
            let mut held = EMPTY;
            // SAFETY: the place outlives the call; the node is the caller's promise.
            context.check("cuGraphKernelNodeGetAttribute", unsafe {
                (driver.cuGraphKernelNodeGetAttribute)(node, attribute.id, &mut held)
            })?;
            if words(attribute.id, &held) != words(attribute.id, &attribute.value) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The numbers in a value, to compare.
fn words(id: Id, value: &CUlaunchAttributeValue) -> [u32; 3] {
    // SAFETY: integers, of which all bytes were initialised with the value.
    unsafe {
        match id {
            Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                let cluster = value.clusterDim;
                [cluster.x, cluster.y, cluster.z]
            }
            Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => [value.cooperative as u32, 0, 0],
            _ => [value.priority as u32, 0, 0],
        }
    }
}

/// The error of a kernel with an attribute that the device does not have.
fn missing_feature_error(context: &PrimaryContext, kernel: &Kernel, feature: &str) -> Error {
    let info = context.device.info();
    let (major, minor) = context.device.capability();
    let message = format!(
        "kernel {} needs {feature}, which {} (compute capability {major}.{minor}) does not have",
        kernel.name, info.name
    );
    Error::new(ErrorKind::Unavailable, message).fix("record another kernel for this device")
}
