//! Which calls the default selection takes, seen from what the calls turned out to hold.
//!
//! A call that ran nothing of ours and did not fail makes a poor trace: the next call is taken
//! instead. The first such capture is kept aside for a program that has nothing better to show.

use super::schedule::Kind;

/// The default selection of one measured name.
#[derive(Debug)]
pub(crate) struct DefaultPick {
    /// The first call worth a capture, counted from 1.
    first: u64,
    /// Captures still wanted.
    left: u32,
    /// Captures under way.
    open: u32,
    published: bool,
    kept: bool,
}

/// How a captured call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As failed, whatever it holds.
    Failed,
    /// Well, with at least one span or record inside.
    Evidence,
    /// Well, but with nothing inside.
    Empty,
    /// The program said that it was no step.
    Withdrawn,
}

/// What to do with the capture of a call that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It becomes a trace; with `drop_kept`, the capture kept aside before is thrown away.
    Publish {
        /// Whether a capture is aside that is now of no use.
        drop_kept: bool,
    },
    /// It stays as `.partial` until the program ends.
    KeepAside,
    /// It is thrown away.
    Discard,
}

impl DefaultPick {
    /// The default for a name of this kind: training captures call 2, inference calls 1 and 2.
    pub(crate) fn new(kind: Kind) -> DefaultPick {
        let (first, left) = match kind {
            Kind::Train => (2, 1),
            Kind::Infer => (1, 2),
        };
        DefaultPick {
            first,
            left,
            open: 0,
            published: false,
            kept: false,
        }
    }

    /// Whether this call, counted from 1, is captured. After `true`, one [`Self::end`] is due.
    pub(crate) fn begin(&mut self, call: u64) -> bool {
        let wanted = call >= self.first && self.open < self.left;
        if wanted {
            self.open += 1;
        }
        wanted
    }

    /// Takes note of how a captured call ended.
    pub(crate) fn end(&mut self, ended: Ended) -> Fate {
        self.open = self.open.saturating_sub(1);
        match ended {
            Ended::Failed | Ended::Evidence => {
                self.left = self.left.saturating_sub(1);
                self.published = true;
                Fate::Publish {
                    drop_kept: std::mem::take(&mut self.kept),
                }
            }
            Ended::Empty if !self.kept && !self.published => {
                self.kept = true;
                Fate::KeepAside
            }
            Ended::Empty | Ended::Withdrawn => Fate::Discard,
        }
    }

    /// At the end of the program: whether the capture kept aside becomes the trace. Says so once.
    pub(crate) fn publish_kept(&mut self) -> bool {
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISH: Fate = Fate::Publish { drop_kept: false };
    const REPLACE: Fate = Fate::Publish { drop_kept: true };

    /// Runs calls one after another; `None` stands for a call that was not captured.
    fn run(kind: Kind, calls: &[Ended]) -> (Vec<Option<Fate>>, bool) {
        let mut pick = DefaultPick::new(kind);
        let fates = (1..)
            .zip(calls)
            .map(|(call, &ended)| pick.begin(call).then(|| pick.end(ended)))
            .collect();
        (fates, pick.publish_kept())
    }

    #[test]
    fn training_takes_the_second_call_and_inference_the_first_two() {
        let calls = [Ended::Evidence; 4];
        assert_eq!(
            run(Kind::Train, &calls),
            (vec![None, Some(PUBLISH), None, None], false)
        );
        assert_eq!(
            run(Kind::Infer, &calls),
            (vec![Some(PUBLISH), Some(PUBLISH), None, None], false)
        );
    }

    #[test]
    fn an_empty_call_gives_way_to_the_next() {
        let calls = [Ended::Empty, Ended::Empty, Ended::Empty, Ended::Evidence];
        let expected = vec![
            None,
            Some(Fate::KeepAside),
            Some(Fate::Discard),
            Some(REPLACE),
        ];
        assert_eq!(run(Kind::Train, &calls), (expected, false));
    }

    #[test]
    fn an_empty_capture_is_published_when_the_name_yields_no_other() {
        let (fates, kept) = run(Kind::Infer, &[Ended::Empty, Ended::Empty]);
        assert_eq!(fates, [Some(Fate::KeepAside), Some(Fate::Discard)]);
        assert!(kept);
        let (fates, kept) = run(Kind::Infer, &[Ended::Evidence, Ended::Empty, Ended::Empty]);
        assert_eq!(
            fates,
            [Some(PUBLISH), Some(Fate::Discard), Some(Fate::Discard)]
        );
        assert!(!kept, "the name has a trace already");
    }

    #[test]
    fn a_failed_call_is_evidence() {
        assert_eq!(
            run(
                Kind::Train,
                &[Ended::Failed, Ended::Failed, Ended::Evidence]
            ),
            (vec![None, Some(PUBLISH), None], false)
        );
    }

    #[test]
    fn calls_at_once_take_no_more_than_is_wanted() {
        let mut pick = DefaultPick::new(Kind::Train);
        assert!(!pick.begin(1));
        assert!(pick.begin(2));
        assert!(!pick.begin(3), "call 2 is still under way");
        assert_eq!(pick.end(Ended::Empty), Fate::KeepAside);
        assert!(pick.begin(4));
        assert_eq!(pick.end(Ended::Evidence), REPLACE);
        assert!(!pick.begin(5));
    }

    #[test]
    fn a_withdrawn_call_is_thrown_away_and_the_next_taken() {
        let mut pick = DefaultPick::new(Kind::Train);
        assert!(pick.begin(2));
        assert_eq!(pick.end(Ended::Withdrawn), Fate::Discard);
        assert!(pick.begin(2), "the call left the count");
        assert_eq!(pick.end(Ended::Evidence), PUBLISH);
    }
}
