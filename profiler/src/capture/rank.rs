//! Which process of a distributed run this is.

use super::settings::{Complaint, Get};

/// A process's place among those of one distributed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    /// From 0.
    pub(crate) rank: u64,
    /// How many processes there are, where that is known.
    pub(crate) world: Option<u64>,
}

/// What the launchers' variables say.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) rank: Option<Rank>,
    /// The first that makes no sense.
    pub(crate) refused: Option<Complaint>,
}

/// The variables of a launcher.
struct Launcher {
    rank: &'static str,
    world: &'static str,
    /// Whether a rank counts without a world size. Only `RANK` does: schedulers set the others for lone processes too,
    /// and then leave out the size.
    alone: bool,
}

const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        rank: "RANK",
        world: "WORLD_SIZE",
        alone: true,
    },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        world: "OMPI_COMM_WORLD_SIZE",
        alone: false,
    },
    Launcher {
        rank: "PMI_RANK",
        world: "PMI_SIZE",
        alone: false,
    },
    Launcher {
        rank: "SLURM_PROCID",
        world: "SLURM_NTASKS",
        alone: false,
    },
];

/// What a rank may be.
const RANKS: &str = "a whole number from 0, below the number of processes";
/// What a world size may be.
const SIZES: &str = "a whole number from 1";

impl Rank {
    /// The first launcher's rank that makes sense. In a world of one a rank says nothing.
    pub(crate) fn read(get: Get<'_>) -> Told {
        let mut told = Told::default();
        for launcher in &LAUNCHERS {
            match launcher.read(get) {
                Ok(None) => {}
                Ok(rank) => {
                    told.rank = rank;
                    break;
                }
                Err(complaint) => {
                    told.refused.get_or_insert(complaint);
                }
            }
        }
        told
    }
}

impl Launcher {
    fn read(&self, get: Get<'_>) -> Result<Option<Rank>, Complaint> {
        let Some(rank) = text(get, self.rank) else {
            return Ok(None);
        };
        let world = text(get, self.world);
        if world.is_none() && !self.alone {
            return Ok(None);
        }
        let number_of_rank = number(self.rank, &rank, RANKS)?;
        let world = world.map(|world| match number(self.world, &world, SIZES)? {
            0 => {
                let why = "there is at least this process".to_owned();
                Err(Complaint::new(self.world, &world, why, SIZES))
            }
            world => Ok(world),
        });
        let world = world.transpose()?;
        if let Some(world) = world.filter(|world| number_of_rank >= *world) {
            let why = format!("{}={world}, so the last rank is {}", self.world, world - 1);
            return Err(Complaint::new(self.rank, &rank, why, RANKS));
        }
        let rank = Rank {
            rank: number_of_rank,
            world,
        };
        Ok(Some(rank).filter(|_| world != Some(1)))
    }
}

/// A variable that is set; blank is not.
fn text(get: Get<'_>, variable: &str) -> Option<String> {
    let value = get(variable)?.to_string_lossy().trim().to_owned();
    Some(value).filter(|value| !value.is_empty())
}

fn number(variable: &'static str, text: &str, allowed: &'static str) -> Result<u64, Complaint> {
    text.parse().map_err(|_| {
        let why = "it is no such number".to_owned();
        Complaint::new(variable, text, why, allowed)
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn told(environment: &[(&str, &str)]) -> Told {
        Rank::read(&|name| {
            let found = environment.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(found.1))
        })
    }

    fn read(environment: &[(&str, &str)]) -> Option<Rank> {
        told(environment).rank
    }

    fn refused(environment: &[(&str, &str)]) -> Option<String> {
        let told = told(environment);
        assert!(told.rank.is_none() || told.refused.is_none());
        told.refused.map(|complaint| complaint.to_string())
    }

    fn rank(rank: u64, world: u64) -> Option<Rank> {
        Some(Rank {
            rank,
            world: Some(world),
        })
    }

    #[test]
    fn each_launcher_is_understood() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("RANK", "3"), ("WORLD_SIZE", "8")]), rank(3, 8));
        assert_eq!(
            read(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")]),
            rank(1, 2)
        );
        assert_eq!(read(&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]), rank(0, 4));
        assert_eq!(
            read(&[("SLURM_PROCID", "5"), ("SLURM_NTASKS", "6")]),
            rank(5, 6)
        );
    }

    #[test]
    fn the_first_launcher_that_makes_sense_wins() {
        let slurm = [("SLURM_PROCID", "5"), ("SLURM_NTASKS", "6")];
        let with = |more: &[(&'static str, &'static str)]| read(&[more, &slurm].concat());
        assert_eq!(with(&[("RANK", "0"), ("WORLD_SIZE", "2")]), rank(0, 2));
        assert_eq!(with(&[("RANK", "0"), ("WORLD_SIZE", "1")]), rank(5, 6));
        assert_eq!(with(&[("RANK", "captain")]), rank(5, 6));
        assert_eq!(with(&[("RANK", "9"), ("WORLD_SIZE", "2")]), rank(5, 6));
        assert_eq!(with(&[("RANK", "-1"), ("WORLD_SIZE", "2")]), rank(5, 6));
    }

    #[test]
    fn a_lone_process_has_no_rank() {
        assert_eq!(read(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]), None);
        assert_eq!(read(&[("SLURM_PROCID", "0")]), None);
        assert_eq!(
            read(&[("RANK", "2")]),
            Some(Rank {
                rank: 2,
                world: None
            })
        );
    }

    #[test]
    fn what_makes_no_sense_is_told_and_what_says_nothing_is_not() {
        let of = |rank, world| refused(&[("RANK", rank), ("WORLD_SIZE", world)]);
        assert_eq!(
            of("2", "2").unwrap(),
            "RANK=2 is not understood: WORLD_SIZE=2, so the last rank is 1; allowed: a whole number from 0, below the \
             number of processes"
        );
        for rank in ["x", "-1", "1.5", "99999999999999999999999"] {
            let line = of(rank, "2").unwrap();
            let start = format!("RANK={rank} is not understood: it is no such number; allowed: ");
            assert!(line.starts_with(&start), "{line}");
        }
        for world in ["x", "0", "-2"] {
            let line = of("0", world).unwrap();
            assert!(
                line.starts_with(&format!("WORLD_SIZE={world} is not")),
                "{line}"
            );
            assert!(line.ends_with("allowed: a whole number from 1"), "{line}");
        }
        assert!(refused(&[("RANK", "x")]).is_some());
        assert!(of("1", "1").is_some());
        let slurm = [("SLURM_PROCID", "7"), ("SLURM_NTASKS", "6")];
        assert!(refused(&slurm).unwrap().starts_with("SLURM_PROCID=7 "));
        for silent in [
            &[("RANK", "0"), ("WORLD_SIZE", "1")][..],
            &[("RANK", ""), ("WORLD_SIZE", "x")],
            &[("WORLD_SIZE", "x")],
            &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")],
            &[("SLURM_PROCID", "3")],
            &[("RANK", "3")],
        ] {
            assert_eq!(refused(silent), None, "{silent:?}");
        }
        let told = told(&[("RANK", "x"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]);
        assert_eq!(told.rank, rank(1, 2));
        assert!(told.refused.is_some(), "another's rank is taken instead");
    }
}
