//! Kernels of the worker, and the compilation of their images.

use super::super::message::{KernelDecl, Request, WorkerReply};
use super::super::restart_state::prepare_images;
use super::{Supervisor, SupervisorCore};
use crate::backend::{Compilation, FunctionId};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{DeviceCode, Image, Kernel};
use std::sync::Arc;

impl Supervisor {
    /// Sends the worker the images that it does not have, has it compile them, and waits for that.
    pub(in super::super) fn prepare(&self, images: &[Arc<Image>]) -> Result<()> {
        let mut core = self.core()?;
        let known = core.restart_state.images.len();
        for image in images {
            self.send_image(&mut core, image)?;
        }
        if core.restart_state.images.len() == known {
            return Ok(());
        }
        let report = |compilation| self.compilation.lock()[1] = compilation;
        let outcome = prepare_images(&mut core.link, known, report);
        self.check_answer(self.check_link(&core.link, outcome)?)
    }

    /// What the workers have compiled, as they last reported.
    pub(in super::super) fn compilation(&self) -> Compilation {
        if !self.process.is_current() {
            return Compilation::default();
        }
        let [earlier, of_worker] = *self.compilation.lock();
        [earlier, of_worker].into_iter().sum()
    }

    /// The index of an image, which is sent if the worker does not have it.
    fn send_image(&self, core: &mut SupervisorCore, image: &Arc<Image>) -> Result<usize> {
        let images = &core.restart_state.images;
        if let Some(place) = images.iter().position(|known| known == image) {
            return Ok(place);
        }
        self.workers.check()?;
        let sent = core.link.send(&Request::Image(Arc::clone(image)));
        self.check_link(&core.link, sent)?;
        core.restart_state.images.push(Arc::clone(image));
        Ok(core.restart_state.images.len() - 1)
    }

    /// Has the worker load a kernel, whose image it is sent first, and waits for it. One that it has loaded before
    /// keeps its id.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] for a library call; those of the worker.
    pub(in super::super) fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        let mut core = self.core()?;
        let image = match &kernel.code {
            Some(DeviceCode::Library(_)) => return Err(no_library_calls(kernel)),
            Some(DeviceCode::Image(image)) => Some(self.send_image(&mut core, image)?),
            None => None,
        };
        let decl = KernelDecl::new(kernel, image);
        let kernels = &core.restart_state.kernels;
        if let Some(place) = kernels.iter().position(|known| *known == decl) {
            return Ok(FunctionId(place as u32));
        }
        match self.exchange(&mut core, &Request::Load(decl.clone()))? {
            WorkerReply::Done(loaded) => self.check_answer(loaded)?,
            _ => return Err(self.lose_garbled()),
        }
        core.restart_state.kernels.push(decl);
        Ok(FunctionId(core.restart_state.kernels.len() as u32 - 1))
    }
}

fn no_library_calls(kernel: &Kernel) -> Error {
    let message = format!(
        "kernel {} is a library call, which a worker process does not have",
        kernel.name()
    );
    Error::new(ErrorKind::Kernel, message).fix("use a device that is not supervised")
}
