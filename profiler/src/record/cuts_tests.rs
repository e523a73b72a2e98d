use super::*;
use crate::trace::MemoryCategory;

/// A call of a function with these hints: `elements` of a tensor that depends on `vars` went in, and came out.
struct Made {
    span: u64,
    hints: u32,
    vars: Vec<u64>,
    serial: u64,
    elements: usize,
    around: Vec<u64>,
}

impl Made {
    fn call(self, cuts: &mut Cuts) {
        let event = TensorEvent {
            span_id: String::new(),
            tensor_id: String::new(),
            label: None,
            shape: vec![self.elements],
            dtype: "f32".to_owned(),
            device: "cpu".to_owned(),
            requires_grad: false,
            dense_bytes: None,
            category: MemoryCategory::Activation,
            extra: None,
        };
        let crossing = Crossing {
            what: Crossed::Function(Hints(self.hints)),
            meant: false,
            inputs: vec![12],
            vars: Some(self.vars),
            made_of: Some(vec![500 + self.span]),
            outputs: vec![Untracked {
                serial: self.serial,
                elements: self.elements,
                rank: 2,
                fresh: true,
                mask: false,
                event: Box::new(event),
            }],
        };
        let spot = Spot {
            span: self.span,
            own: true,
            chain: self.around.into_iter().chain([self.span]).collect(),
            at: now(cuts),
            name: format!("span {}", self.span),
            file: "a.rs",
            line: u32::try_from(self.span % 100).unwrap(),
        };
        cuts.crossed(spot, crossing, false);
    }
}

fn made(span: u64) -> Made {
    Made {
        span,
        hints: 0,
        vars: vec![1, 2],
        serial: 1000 + span,
        elements: 12,
        around: Vec::new(),
    }
}

/// A time after all that has been seen.
fn now(cuts: &Cuts) -> u64 {
    (cuts.calls.len() + cuts.passes.len()) as u64
}

/// A backward pass whose loss reaches these variables, with entries for these tensors of 12 elements.
fn pass(cuts: &mut Cuts, reached: &[u64], entries: &[u64]) {
    let pass = Backward {
        root: Some(5000),
        reached: Some(reached.to_vec()),
        made_of: Some(Vec::new()),
        entries: Some(entries.iter().map(|serial| (*serial, 12)).collect()),
        graph: None,
    };
    cuts.passed(now(cuts), pass);
}

fn spans(cuts: &Cuts) -> Vec<u64> {
    let found = cuts.judge(&|_| false).into_iter();
    found.map(|cut| cut.spot.span).collect()
}

#[test]
fn what_is_only_looked_at_is_innocent_and_what_is_used_is_not() {
    let mut cuts = Cuts::default();
    made(10).call(&mut cuts);
    made(40).call(&mut cuts);
    pass(&mut cuts, &[1, 2, 3], &[1, 2, 3, 1040]);
    assert_eq!(spans(&cuts), [40]);
}

#[test]
fn what_follows_the_last_backward_pass_is_innocent() {
    let mut cuts = Cuts::default();
    pass(&mut cuts, &[1, 2], &[1010]);
    Made {
        hints: Hints::RMS_NORM.0,
        ..made(10)
    }
    .call(&mut cuts);
    assert_eq!(spans(&cuts), [0; 0]);
}

#[test]
fn a_variable_that_no_loss_reaches_accuses_and_two_losses_reach_more() {
    let mut cuts = Cuts::default();
    made(10).call(&mut cuts);
    pass(&mut cuts, &[1], &[900]);
    assert_eq!(spans(&cuts), [0; 0], "nothing that came later is in it");
    pass(&mut cuts, &[1], &[1500]);
    assert_eq!(spans(&cuts), [10]);
    assert_eq!(cuts.judge(&|_| false)[0].lost, [2]);
    pass(&mut cuts, &[2], &[]);
    assert_eq!(spans(&cuts), [0; 0]);
}

#[test]
fn an_inner_call_explains_the_outer_one_and_a_sibling_does_not() {
    let mut cuts = Cuts::default();
    // Span 11 ends inside of 10, 13 as well but not inside of 12.
    for (span, around) in [(11, 10), (13, 10), (12, 1), (10, 1)] {
        Made {
            hints: Hints::LAYER_NORM.0,
            around: vec![around],
            ..made(span)
        }
        .call(&mut cuts);
    }
    pass(&mut cuts, &[3], &[1500]);
    assert_eq!(spans(&cuts), [11, 13, 12]);
}

#[test]
fn an_inner_call_that_detaches_explains_the_outer_one_too() {
    let mut cuts = Cuts::default();
    Made {
        hints: Hints::LEAVES.0,
        around: vec![1, 10],
        ..made(11)
    }
    .call(&mut cuts);
    made(10).call(&mut cuts);
    pass(&mut cuts, &[3], &[1010]);
    assert_eq!(spans(&cuts), [0; 0]);
}

#[test]
fn a_place_is_one_cut_however_often_it_is_called() {
    let mut cuts = Cuts::default();
    for span in [110, 210, 310] {
        Made {
            vars: vec![span],
            ..made(span)
        }
        .call(&mut cuts);
    }
    pass(&mut cuts, &[1], &[1110, 1210, 1310]);
    let found = cuts.judge(&|_| false);
    assert_eq!((found.len(), found[0].calls), (1, 3));
    assert_eq!(found[0].lost, [110, 210, 310]);
}

#[test]
fn variables_that_are_not_trained_are_let_go_where_names_tell() {
    let mut cuts = Cuts::default();
    Made {
        hints: Hints::SOFTMAX.0,
        ..made(10)
    }
    .call(&mut cuts);
    pass(&mut cuts, &[7], &[7, 1010]);
    assert_eq!(spans(&cuts), [10], "nothing is known of names");
    let student = cuts.judge(&|var| var == 7);
    assert!(student.is_empty(), "the names are those of another network");
    let both = cuts.judge(&|_| true);
    assert_eq!(both.len(), 1);
}

#[test]
fn numbers_and_other_sizes_need_more_than_a_resemblance() {
    let mut cuts = Cuts::default();
    Made {
        elements: 1,
        ..made(10)
    }
    .call(&mut cuts);
    Made {
        elements: 5,
        ..made(11)
    }
    .call(&mut cuts);
    Made {
        hints: Hints::CREATES.0,
        ..made(12)
    }
    .call(&mut cuts);
    pass(&mut cuts, &[1, 2], &[1010, 1011, 1012]);
    assert_eq!(
        spans(&cuts),
        [0; 0],
        "all that went in is reached all the same"
    );
}

#[test]
fn what_is_beside_the_loss_is_told_where_something_like_it_goes_in() {
    let told = |made_of: u64, entry: u64| {
        let mut cuts = Cuts::default();
        made(10).call(&mut cuts);
        let pass = Backward {
            root: Some(5000),
            reached: Some(vec![1, 2]),
            made_of: Some(vec![400, made_of]),
            entries: Some(vec![(entry, 12)]),
            graph: None,
        };
        cuts.passed(now(&cuts), pass);
        spans(&cuts) == [10]
    };
    assert!(told(510, 1013), "what it was given is in the loss, too");
    assert!(!told(511, 1013), "the same size, of another batch");
    assert!(!told(510, 1100), "too much later");
}

#[test]
fn what_the_caller_detaches_is_meant() {
    let mut cuts = Cuts::default();
    cuts.detaches(7, "other a::f");
    cuts.detaches(7, "other span");
    for (span, around) in [(10, vec![7]), (20, vec![8]), (30, vec![7, 8])] {
        Made {
            around,
            ..made(span)
        }
        .call(&mut cuts);
        cuts.calls.last_mut().unwrap().spot.name = "a::span".to_owned();
    }
    pass(&mut cuts, &[1, 2], &[1010, 1020, 1030]);
    assert_eq!(spans(&cuts), [20, 30]);
}
