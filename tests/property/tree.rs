//! Random trees of calls. All names are numbers; those of destructors are [`CLEANER`] higher than their owner's.

/// The number of the measured call.
pub(crate) const MEASURED: u32 = 0;

/// What a destructor's span adds to the number of the call it cleans up after.
pub(crate) const CLEANER: u32 = 1_000;

/// One measured call.
#[derive(Debug)]
pub(crate) enum Tree {
    /// A function, and a thread that still has a span open when it ends.
    Plain {
        body: Vec<Node>,
        end: End,
        late: Option<u32>,
    },
    /// An async function, each poll on a thread of its own or all on one.
    Async {
        task: Task,
        limit: Limit,
        moves: bool,
    },
}

/// How a function ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Ok,
    Err,
    Panic,
}

/// After how many polls a future is dropped if it is not done.
pub(crate) type Limit = Option<usize>;

/// Something that happens on a thread.
#[derive(Debug)]
pub(crate) enum Node {
    /// A call of an annotated function, which records its return value.
    Call { id: u32, body: Vec<Node> },
    /// The same by a guard.
    Guard { id: u32, body: Vec<Node> },
    /// A number is recorded.
    Record { id: u32 },
    /// A guard that is never dropped: what follows happens inside, up to the end of what is around.
    Forgotten { id: u32 },
    /// Calls inside each other that a panic leaves; it is caught around them.
    Panics { ids: Vec<u32>, body: Vec<Node> },
    /// Guards dropped in any order, with a call after each drop.
    Shuffled {
        ids: Vec<u32>,
        drops: Vec<(usize, u32)>,
    },
    /// Threads with a handle.
    Threads { branches: Vec<Vec<Node>> },
    /// This thread enters a handle of its own.
    Here { body: Vec<Node> },
    /// A handle of a span that has ended, and a call through it.
    Stale { id: u32, call: u32 },
    /// A thread without a handle.
    Stray { id: u32 },
    /// A thread whose span outlives the last `ended` of the spans around the handle.
    Overhang {
        chain: Vec<u32>,
        ended: usize,
        id: u32,
        body: Vec<Node>,
    },
    /// Threads of a handle, while the spans around it end one after the other: any of them can become the parent.
    Race {
        chain: Vec<u32>,
        branches: Vec<(u32, Vec<Node>)>,
    },
    /// Futures that take turns on this thread.
    Interleaved { tasks: Vec<(Task, Limit)> },
    /// A future that is polled on another thread each time but the first.
    Moving { task: Task, limit: Limit },
    /// A future that is first polled inside all of the chain, and further after the last `ended` of it have ended.
    OverhangTask {
        chain: Vec<u32>,
        ended: usize,
        task: Task,
        limit: Limit,
    },
}

/// A call of an annotated async function, which records its output.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// The future is pending once.
    Turn,
    Do(Node),
    Await(Task),
    Panic,
}

/// Makes trees; the same seed gives the same tree.
pub(crate) struct Maker {
    state: u64,
    last_id: u32,
    /// How many more spans the tree should have.
    room: u32,
}

impl Maker {
    pub(crate) fn tree(seed: u64) -> Tree {
        let mut maker = Self {
            state: seed,
            last_id: MEASURED,
            room: 0,
        };
        maker.room = 5 + maker.below(26);
        if maker.one_in(4) {
            let steps = maker.steps(0);
            return Tree::Async {
                task: Task {
                    id: MEASURED,
                    steps,
                },
                limit: maker.limit(),
                moves: maker.one_in(3),
            };
        }
        let late = maker.one_in(10).then(|| maker.id());
        let mut body = Vec::new();
        while maker.room > 0 {
            body.push(maker.node(0));
        }
        let end = match maker.below(10) {
            0 => End::Err,
            1 => End::Panic,
            _ => End::Ok,
        };
        Tree::Plain { body, end, late }
    }

    /// The generator is SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u32) -> u32 {
        let within = self.next() % u64::from(end);
        u32::try_from(within).expect("below a u32")
    }

    fn some(&mut self, end: u32) -> usize {
        self.below(end) as usize
    }

    fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn id(&mut self) -> u32 {
        self.last_id += 1;
        self.room = self.room.saturating_sub(1);
        self.last_id
    }

    fn ids(&mut self, most: u32) -> Vec<u32> {
        (0..=self.below(most)).map(|_| self.id()).collect()
    }

    fn limit(&mut self) -> Limit {
        self.one_in(3).then(|| 1 + self.some(4))
    }

    fn body(&mut self, depth: u32) -> Vec<Node> {
        let most = if depth > 5 { 1 } else { 4 };
        let wanted = self.below(most);
        let mut body = Vec::new();
        for _ in 0..wanted {
            if self.room > 0 {
                body.push(self.node(depth + 1));
            }
        }
        body
    }

    fn node(&mut self, depth: u32) -> Node {
        match self.below(19) {
            0..=3 => Node::Call {
                id: self.id(),
                body: self.body(depth),
            },
            4 | 5 => Node::Guard {
                id: self.id(),
                body: self.body(depth),
            },
            6 => Node::Record { id: self.id() },
            7 => Node::Forgotten { id: self.id() },
            8 | 9 => Node::Panics {
                ids: self.ids(3),
                body: self.body(depth),
            },
            10 => self.shuffled(),
            11 => Node::Threads {
                branches: (0..=self.below(3)).map(|_| self.body(depth)).collect(),
            },
            12 => Node::Here {
                body: self.body(depth),
            },
            13 => match self.below(2) {
                0 => Node::Stray { id: self.id() },
                _ => Node::Stale {
                    id: self.id(),
                    call: self.id(),
                },
            },
            14 => {
                let chain = self.ids(3);
                Node::Overhang {
                    ended: self.some(1 + u32::try_from(chain.len()).expect("few")),
                    chain,
                    id: self.id(),
                    body: self.body(depth),
                }
            }
            15 => Node::Interleaved {
                tasks: (0..=self.below(3))
                    .map(|_| (self.task(depth), self.limit()))
                    .collect(),
            },
            16 => Node::Moving {
                task: self.task(depth),
                limit: self.limit(),
            },
            17 => Node::Race {
                chain: self.ids(3),
                branches: (0..=self.below(3))
                    .map(|_| (self.id(), self.body(depth)))
                    .collect(),
            },
            _ => {
                let chain = self.ids(3);
                Node::OverhangTask {
                    ended: self.some(1 + u32::try_from(chain.len()).expect("few")),
                    chain,
                    task: self.task(depth),
                    limit: self.limit(),
                }
            }
        }
    }

    fn shuffled(&mut self) -> Node {
        let ids = self.ids(4);
        let mut order: Vec<usize> = (0..ids.len()).collect();
        for index in (1..order.len()).rev() {
            let other = self.some(u32::try_from(index + 1).expect("few"));
            order.swap(index, other);
        }
        let drops = order.into_iter().map(|index| (index, self.id()));
        Node::Shuffled {
            drops: drops.collect(),
            ids,
        }
    }

    fn task(&mut self, depth: u32) -> Task {
        Task {
            id: self.id(),
            steps: self.steps(depth),
        }
    }

    fn steps(&mut self, depth: u32) -> Vec<Step> {
        let most = if depth > 5 { 1 } else { 6 };
        let wanted = self.below(most);
        let mut steps = Vec::new();
        for _ in 0..wanted {
            let step = match self.below(12) {
                0..=4 => Step::Turn,
                5..=8 if self.room > 0 => Step::Do(self.node(depth + 1)),
                9 | 10 if self.room > 0 => Step::Await(self.task(depth + 1)),
                11 if self.one_in(2) => Step::Panic,
                _ => Step::Turn,
            };
            steps.push(step);
        }
        steps
    }
}
