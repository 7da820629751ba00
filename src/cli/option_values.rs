//! How options spell the choices of the library.

use crate::data::{BadRows, Missing};
use crate::experiment::Units;
use crate::settings::{CovarianceType, Effort, Moments, StartKind};

macro_rules! spell {
    ($choice:ident: $($variant:ident = $name:literal, $help:literal;)+) => {
        impl clap::ValueEnum for $choice {
            fn value_variants<'a>() -> &'a [Self] {
                &[$($choice::$variant),+]
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                Some(match self {
                    $($choice::$variant => clap::builder::PossibleValue::new($name).help($help),)+
                })
            }
        }
    };
}

pub(super) use spell;

spell! { Effort:
    Fast = "fast", "Only the start, as cheap as possible, without revisions";
    Default = "default", "The start, and revisions with a few moves each";
    Thorough = "thorough", "More moves, and EM to closer convergence";
}

spell! { CovarianceType:
    Full = "full", "A full matrix for each component";
    Tied = "tied", "One full matrix that all components share";
    Diag = "diag", "A variance of each column for each component";
    Spherical = "spherical", "One variance of all columns for each component";
}

spell! { StartKind:
    Fitted = "fitted", "A mixture fitted to the first rows, which are buffered";
    Blind = "blind", "Components drawn around the mean and covariance of the first few rows, as the paper may have begun; no revisions";
}

spell! { Moments:
    Whitened = "whitened", "Whitened moments, which are affine-equivariant and matched exactly";
    Paper = "paper", "The paper's printed equations, as closely as possible";
}

spell! { BadRows:
    Refuse = "refuse", "Stop with an error that says where it is";
    Skip = "skip", "Skip it and count it";
}

spell! { Missing:
    Refuse = "refuse", "Stop with an error that counts them";
    Skip = "skip", "Skip rows with missing values and count them";
    Marginal = "marginal", "Use the values that a row has";
}

spell! { Units:
    Raw = "raw", "Those of the data";
    Zscore = "zscore", "Every column scaled to mean 0 and standard deviation 1";
}
