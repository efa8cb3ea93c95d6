//! The solvent-accessible areas, which several features need and one launch makes.

use super::super::columns::TableName;
use super::super::config::FeatureName;
use super::super::layout::RESIDUES;
use super::super::{sasa, sphere};
use super::{Recording, Results, Step, args};
use crate::record::Arg;

/// The areas of a recording.
#[derive(Clone, Copy)]
pub(super) struct Areas {
    model: Results<f32>,
    delta: Option<Results<f32>>,
    /// Where the header has the test points.
    points: usize,
    /// The launch among the steps.
    step: usize,
}

impl Recording<'_> {
    /// Areas in the model, three values a residue in A^2: all atoms', the side
    /// chain's, the polar atoms'; NaN without an atom. They stay on the device
    /// unless the columns of [`FeatureName::Sasa`] are asked for.
    pub(in super::super) fn areas(&mut self) -> Results<f32> {
        self.made_areas().model
    }

    /// What other chains bury, one value a residue in A^2: the area with nothing
    /// but its own chain less that in the model; NaN without an atom.
    pub(in super::super) fn area_deltas(&mut self) -> Results<f32> {
        let mut areas = self.made_areas();
        if let Some(delta) = areas.delta {
            return delta;
        }
        let delta = self.results(TableName::Residues, "area_deltas", 1);
        areas.delta = Some(delta);
        self.areas = Some(areas);
        self.steps[areas.step] = self.launch_of(&areas);
        delta
    }

    fn made_areas(&mut self) -> Areas {
        if let Some(areas) = self.areas {
            return areas;
        }
        let points = sphere::golden_spiral(self.config.sasa.points);
        let axes = (0..3).flat_map(|axis| points.iter().map(move |point| point[axis]));
        let model = match self.config.features.contains(&FeatureName::Sasa) {
            true => self.results(TableName::Residues, "areas", 3),
            false => {
                let buffer = self.device("areas", RESIDUES, 3);
                Results {
                    buffer,
                    read: buffer.into(),
                    table: TableName::Residues,
                    values: 3,
                }
            }
        };
        // The cells' launches come first.
        self.atom_cells();
        let areas = Areas {
            model,
            delta: None,
            points: self.constants("sasa_point", axes),
            step: self.steps.len(),
        };
        let launch = self.launch_of(&areas);
        self.steps.push(launch);
        *self.areas.insert(areas)
    }

    fn launch_of(&mut self, areas: &Areas) -> Step {
        let sasa = &self.config.sasa;
        let (count, probe) = (sasa.points, sasa.probe.milli_angstrom());
        let (structures, residues, atoms) = (self.structures(), self.residues(), self.atoms());
        let mut args = args![self.header(), structures, residues, atoms; self.atom_cells();
            areas.model]
        .to_vec();
        args.extend(areas.delta.map(Arg::from));
        args.extend(args![areas.points as u32, count, probe]);
        let kernel = sasa::kernel_of(areas.delta.is_some());
        let blocks = self
            .recorder
            .capacity(RESIDUES)
            .div_ceil(kernel.block[0] / 32);
        Step::Launch(kernel, blocks, args)
    }
}
