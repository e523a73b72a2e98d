//! Which process of a distributed run this is.

use std::ffi::OsString;

/// A process's place among those of one distributed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    /// From 0.
    pub(crate) rank: u64,
    /// How many processes there are, where that is known.
    pub(crate) world: Option<u64>,
}

/// Launchers' variables: rank, world size, and whether the rank counts without a world size.
///
/// Only `RANK` does: schedulers set the others for lone processes too, and then leave out the size.
const LAUNCHERS: [(&str, &str, bool); 4] = [
    ("RANK", "WORLD_SIZE", true),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false),
    ("PMI_RANK", "PMI_SIZE", false),
    ("SLURM_PROCID", "SLURM_NTASKS", false),
];

impl Rank {
    /// The first launcher's rank that makes sense. The variables are other programs', so what
    /// makes none is passed over in silence; so is a world of one, where a rank says nothing.
    pub(crate) fn read(get: &dyn Fn(&str) -> Option<OsString>) -> Option<Rank> {
        LAUNCHERS
            .iter()
            .find_map(|&(rank, world, alone)| Rank::of_launcher(get(rank)?, get(world), alone))
    }

    fn of_launcher(rank: OsString, world: Option<OsString>, alone: bool) -> Option<Rank> {
        let rank = number(&rank)?;
        match world {
            None => alone.then_some(Rank { rank, world: None }),
            Some(world) => {
                let world = number(&world)?;
                (world > 1 && rank < world).then_some(Rank {
                    rank,
                    world: Some(world),
                })
            }
        }
    }
}

fn number(text: &OsString) -> Option<u64> {
    text.to_str()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(environment: &[(&str, &str)]) -> Option<Rank> {
        Rank::read(&|name| {
            let found = environment.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(found.1))
        })
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
}
