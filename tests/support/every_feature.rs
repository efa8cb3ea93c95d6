//! A configuration in which every feature computes something.

use tapeloop::features::{FeatureConfig, FeatureName};

/// All features, those included that compute nothing by default.
pub(crate) fn every_feature() -> FeatureConfig {
    let mut config = FeatureConfig::default();
    for &name in FeatureName::ALL {
        config.let_compute(name);
    }
    config
}
