//! How sure a proposal is: a number made of named facts, the same for the same facts.
//!
//! # Strategy
//!
//! A fix starts at 0.95, and each fact that makes it less certain takes something away:
//!
//! | fact | takes |
//! |---|---|
//! | it takes a declaration away | 0.30 |
//! | not all findings that were asked about offer it | 0.30 x the share that does not |
//! | it edits files other than the finding's own | 0.15 |
//! | no server marks it as preferred | 0.10 |
//! | another fix is offered as well | 0.10 |
//! | the findings are errors | 0.05 |
//! | more than 20 files | 0.05 |
//! | more findings than were asked about | 0.05 |
//!
//! Leaving a group alone is 0.80 sure when nothing but suppressing is offered, and 0.40 when there are fixes and none
//! stands out.
//!
//! # Implementation
//!
//! Applying what was decided starts at 0.95:
//!
//! | fact | takes |
//! |---|---|
//! | it takes a declaration away | 0.15 |
//! | it edits files other than the finding's own | 0.10 |
//! | the number of findings is not the one that was decided on | 0.10 |
//! | a file that changes has no baseline to compare with | 0.10 |
//! | edits overlap and need more rounds | 0.05 |
//!
//! Both end between 0.05 and 0.99, in hundredths.

use agents_domain::words::{agree, count, share};
use serde::Serialize;

/// Many files.
const MANY_FILES: usize = 20;

/// A fact and what it does to the confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Factor {
    /// For people.
    pub fact: String,
    /// Added to the confidence.
    pub effect: f64,
}

/// The facts about a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Case {
    /// A fix was proposed.
    Fix(FixFacts),
    /// Only suppressing is on offer.
    OnlySuppressing,
    /// None of this many fixes stands out.
    Undecided {
        /// How many fixes are offered.
        fixes: usize,
    },
}

/// The facts about a proposed fix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FixFacts {
    /// Findings that were asked about.
    pub probed: usize,
    /// Of these, those that offer it.
    pub offering: usize,
    /// Of these, those that take a declaration away.
    pub deleting: usize,
    /// Of these, those that edit other files.
    pub elsewhere: usize,
    /// Marked as preferred.
    pub preferred: bool,
    /// Other fixes on offer.
    pub rivals: usize,
    /// The findings are errors.
    pub errors: bool,
    /// Files with findings.
    pub files: usize,
    /// Findings that were not asked about.
    pub unprobed: usize,
}

/// The facts about applying.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ApplyFacts {
    /// Edits that take a declaration away.
    pub deleting: usize,
    /// Findings whose fix edits other files.
    pub elsewhere: usize,
    /// Findings decided on.
    pub decided: usize,
    /// Findings there are.
    pub found: usize,
    /// Changed files without a baseline.
    pub without_baseline: usize,
    /// Findings whose edits overlap with others.
    pub waiting: usize,
}

/// The confidence in a strategy, and what it is made of.
pub(super) fn of_strategy(case: Case) -> (f64, Vec<Factor>) {
    let facts = match case {
        Case::OnlySuppressing => {
            let fact = "only suppressing is offered, and leaving alone changes nothing".to_owned();
            return sum(vec![Factor { fact, effect: 0.80 }]);
        }
        Case::Undecided { fixes } => {
            let fact = format!("{fixes} fixes are offered and none stands out");
            return sum(vec![Factor { fact, effect: 0.40 }]);
        }
        Case::Fix(facts) => facts,
    };
    let FixFacts { probed, offering, deleting, elsewhere, preferred, rivals, errors, files, unprobed } =
        facts;
    let mut factors = vec![Factor { fact: "a fix that a server offers".to_owned(), effect: 0.95 }];
    let mut less = |applies: bool, effect: f64, fact: String| {
        if applies {
            factors.push(Factor { fact, effect: -effect });
        }
    };
    less(deleting > 0, 0.30, format!("it takes a declaration away ({deleting} of {offering})"));
    let without = probed.saturating_sub(offering);
    let missing = if probed == 0 { 0.0 } else { without as f64 / probed as f64 };
    less(
        without > 0,
        0.30 * missing,
        format!("{} {} not offer it", share(without, probed, "finding"), agree(without, "does", "do")),
    );
    less(elsewhere > 0, 0.15, format!("it edits other files ({elsewhere} of {offering})"));
    less(!preferred, 0.10, "no server marks it as preferred".to_owned());
    less(
        rivals > 0,
        0.10,
        format!("{} {} offered too", agree(rivals, "another fix", "other fixes"), agree(rivals, "is", "are")),
    );
    less(errors, 0.05, "the findings are errors".to_owned());
    less(files > MANY_FILES, 0.05, format!("{files} files are concerned"));
    less(
        unprobed > 0,
        0.05,
        format!("{} {} not asked about", count(unprobed, "more finding"), agree(unprobed, "was", "were")),
    );
    sum(factors)
}

/// The confidence in applying what was decided, and what it is made of.
pub(super) fn of_applying(facts: ApplyFacts) -> (f64, Vec<Factor>) {
    let ApplyFacts { deleting, elsewhere, decided, found, without_baseline, waiting } = facts;
    let mut factors = vec![Factor { fact: "it was decided on".to_owned(), effect: 0.95 }];
    let mut less = |applies: bool, effect: f64, fact: String| {
        if applies {
            factors.push(Factor { fact, effect: -effect });
        }
    };
    less(deleting > 0, 0.15, format!("it takes a declaration away ({deleting})"));
    less(elsewhere > 0, 0.10, format!("it edits other files ({elsewhere})"));
    less(
        found != decided,
        0.10,
        format!(
            "{} {} there now, {decided} {} decided on",
            count(found, "finding"),
            agree(found, "is", "are"),
            agree(decided, "was", "were")
        ),
    );
    less(
        without_baseline > 0,
        0.10,
        format!("{} cannot be compared", count(without_baseline, "changed file")),
    );
    less(waiting > 0, 0.05, format!("the edits of {} overlap with others", count(waiting, "finding")));
    sum(factors)
}

fn sum(factors: Vec<Factor>) -> (f64, Vec<Factor>) {
    let sum: f64 = factors.iter().map(|factor| factor.effect).sum();
    ((sum.clamp(0.05, 0.99) * 100.0).round() / 100.0, factors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLEAR: FixFacts = FixFacts {
        probed: 10,
        offering: 10,
        deleting: 0,
        elsewhere: 0,
        preferred: true,
        rivals: 0,
        errors: false,
        files: 3,
        unprobed: 0,
    };

    fn fix(facts: FixFacts) -> f64 {
        of_strategy(Case::Fix(facts)).0
    }

    // DEC-002, ruling 28: the table above, row by row.
    #[test]
    fn each_fact_takes_what_the_table_says() {
        assert_eq!(fix(CLEAR), 0.95);
        assert_eq!(fix(FixFacts { deleting: 1, ..CLEAR }), 0.65);
        assert_eq!(fix(FixFacts { offering: 5, ..CLEAR }), 0.80);
        assert_eq!(fix(FixFacts { elsewhere: 1, ..CLEAR }), 0.80);
        assert_eq!(fix(FixFacts { preferred: false, ..CLEAR }), 0.85);
        assert_eq!(fix(FixFacts { rivals: 2, ..CLEAR }), 0.85);
        assert_eq!(fix(FixFacts { errors: true, ..CLEAR }), 0.90);
        assert_eq!(fix(FixFacts { files: 21, ..CLEAR }), 0.90);
        assert_eq!(fix(FixFacts { unprobed: 9, ..CLEAR }), 0.90);
        assert_eq!(of_strategy(Case::OnlySuppressing).0, 0.80);
        assert_eq!(of_strategy(Case::Undecided { fixes: 3 }).0, 0.40);
        let applying = ApplyFacts { decided: 4, found: 4, ..ApplyFacts::default() };
        assert_eq!(of_applying(applying).0, 0.95);
        assert_eq!(of_applying(ApplyFacts { deleting: 1, ..applying }).0, 0.80);
        assert_eq!(of_applying(ApplyFacts { elsewhere: 1, ..applying }).0, 0.85);
        assert_eq!(of_applying(ApplyFacts { found: 3, ..applying }).0, 0.85);
        assert_eq!(of_applying(ApplyFacts { without_baseline: 1, ..applying }).0, 0.85);
        assert_eq!(of_applying(ApplyFacts { waiting: 1, ..applying }).0, 0.90);
    }

    proptest! {
        #[test]
        fn a_confidence_is_one_and_its_factors_say_why(
            probed in 0usize..500, offering in 0usize..500, deleting in 0usize..9, elsewhere in 0usize..9,
            preferred: bool, rivals in 0usize..9, errors: bool, files in 0usize..99, unprobed in 0usize..9,
        ) {
            let facts = FixFacts { probed, offering, deleting, elsewhere, preferred, rivals, errors, files, unprobed };
            let (confidence, factors) = of_strategy(Case::Fix(facts));
            prop_assert!((0.05..=0.95).contains(&confidence));
            prop_assert!(factors.iter().skip(1).all(|factor| factor.effect <= 0.0));
            let undeleting = fix(FixFacts { deleting: 0, ..facts });
            prop_assert!(confidence <= undeleting);
        }
    }
}
