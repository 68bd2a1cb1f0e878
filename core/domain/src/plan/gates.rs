//! Gates: whether a plan goes on by itself or asks a person, and how sure it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Phase;
use crate::decision::Approval;
use crate::profile::{Gate, Profile, Thresholds};

/// The confidence of what has no history, and of a missing factor.
pub const NEUTRAL_CONFIDENCE: f64 = 0.5;

/// No computed confidence is higher, so that a threshold near 1.0 asks.
pub const MAX_COMPUTED_CONFIDENCE: f64 = 0.99;

/// What a gate says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GateOutcome {
    /// Goes on without a person.
    Pass(Approval),
    /// Waits for a person.
    Ask {
        /// The profile's flag that asks.
        flag: &'static str,
        /// Its threshold, 0.0 to 1.0.
        threshold: f64,
        /// The confidence that was compared with it.
        confidence: f64,
    },
}

impl GateOutcome {
    /// Whether it goes on without a person.
    pub fn passes(self) -> bool {
        matches!(self, Self::Pass(_))
    }
}

/// Whether a decision stands at once.
///
/// `confidence` is what the actor recorded, `computed` stands in where it recorded none. `commanded`: a person started
/// the phase by an explicit command, which answers a threshold of 1.0 in advance, but never for work with effects
/// outside the sandbox. An actor that takes back its own fix passes no gate; do not ask here for that.
pub fn decision_gate(
    profile: &Profile,
    phase: Phase,
    confidence: Option<f64>,
    computed: f64,
    commanded: bool,
    outside_effects: bool,
) -> GateOutcome {
    let gate = match phase {
        Phase::Strategize => Gate::StrategyDecision,
        Phase::Execute | Phase::Apply => Gate::ExecutionDecision,
    };
    let confidence = confidence.unwrap_or(computed);
    if phase != Phase::Strategize && profile.safety.require_human_approval {
        return GateOutcome::Ask { flag: "require_human_approval", threshold: 1.0, confidence };
    }
    match phase_gate(&profile.thresholds, gate, confidence) {
        GateOutcome::Ask { threshold, .. } if threshold >= 1.0 && commanded && !outside_effects => {
            GateOutcome::Pass(Approval::ByCommand)
        }
        outcome => outcome,
    }
}

/// Whether a plan passes a gate that is not about one decision: 0.0 always, 1.0 never, else from the threshold on.
pub fn phase_gate(thresholds: &Thresholds, gate: Gate, confidence: f64) -> GateOutcome {
    if thresholds.pass(gate, confidence) {
        GateOutcome::Pass(Approval::Automatic)
    } else {
        GateOutcome::Ask { flag: gate.flag(), threshold: thresholds.of(gate), confidence }
    }
}

/// What confidence is computed from; each 0.0 to 1.0, `None` where nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Factors {
    /// Share of earlier decisions of this kind that stood.
    pub past_success_rate: Option<f64>,
    /// How much is known of the code.
    pub codebase_familiarity: Option<f64>,
    /// How much could go wrong; counts against confidence.
    pub risk_assessment: Option<f64>,
    /// How much must be kept to; counts against confidence.
    pub invariant_complexity: Option<f64>,
    /// What the actor itself says; left out where it says nothing.
    pub actor_confidence: Option<f64>,
    /// How often the like failed before; counts against confidence, left out where nothing did.
    pub known_failures: Option<f64>,
}

/// One factor as it was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Its name in data.
    pub name: String,
    /// What was measured, 0.0 to 1.0; 0.5 where nothing is known.
    pub value: f64,
    /// What it adds to confidence, 0.0 to 1.0: the value, or its opposite for a risk.
    pub counted: f64,
    /// Something was measured.
    pub known: bool,
}

/// A computed confidence with what it came from, for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComputedConfidence {
    /// 0.0 to 0.99.
    pub score: f64,
    /// The factors, all of equal weight.
    pub factors: Vec<Factor>,
}

/// Computes confidence: the mean of the factors with risks turned round, at most 0.99. The last two factors count only
/// where they are known.
pub fn computed_confidence(factors: &Factors) -> ComputedConfidence {
    let factor = |name: &str, value: Option<f64>, risk: bool| {
        let name = name.to_owned();
        let known = value.filter(|v| v.is_finite()).map(|v| v.clamp(0.0, 1.0));
        let value = known.unwrap_or(NEUTRAL_CONFIDENCE);
        Factor { name, value, counted: if risk { 1.0 - value } else { value }, known: known.is_some() }
    };
    let extra = [
        ("actor_confidence", factors.actor_confidence, false),
        ("known_failures", factors.known_failures, true),
    ];
    let mut counted = vec![
        factor("past_success_rate", factors.past_success_rate, false),
        factor("codebase_familiarity", factors.codebase_familiarity, false),
        factor("risk_assessment", factors.risk_assessment, true),
        factor("invariant_complexity", factors.invariant_complexity, true),
    ];
    counted.extend(
        extra.into_iter().filter(|(_, v, _)| v.is_some()).map(|(name, v, risk)| factor(name, v, risk)),
    );
    let score = counted.iter().map(|f| f.counted).sum::<f64>() / counted.len() as f64;
    // Sums of decimal fractions miss a threshold of two digits by the last bits.
    let score = (score * 1e9).round() / 1e9;
    ComputedConfidence { score: score.min(MAX_COMPUTED_CONFIDENCE), factors: counted }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{built_in_profile, built_in_profiles};

    fn gate(
        profile: &str,
        phase: Phase,
        confidence: Option<f64>,
        commanded: bool,
        outside: bool,
    ) -> GateOutcome {
        let profile = built_in_profile(profile).unwrap();
        decision_gate(&profile, phase, confidence, 0.7, commanded, outside)
    }

    // DEC-015, PROF-002, PROF-003
    #[test]
    fn a_decision_asks_by_the_flag_of_its_phase() {
        assert_eq!(
            gate("supervised", Phase::Strategize, Some(0.1), false, false),
            GateOutcome::Pass(Approval::Automatic)
        );
        assert_eq!(
            gate("supervised", Phase::Execute, Some(1.0), false, false),
            GateOutcome::Ask { flag: "execute_command", threshold: 1.0, confidence: 1.0 }
        );
        assert_eq!(
            gate("cautious", Phase::Strategize, Some(0.59), false, false),
            GateOutcome::Ask { flag: "edit_code", threshold: 0.6, confidence: 0.59 }
        );
        assert!(gate("cautious", Phase::Strategize, Some(0.6), false, false).passes());
    }

    #[test]
    fn the_computed_score_stands_in_only_where_the_actor_gave_none() {
        assert!(gate("cautious", Phase::Strategize, None, false, false).passes());
        assert!(!gate("cautious", Phase::Execute, None, false, false).passes());
        assert!(!gate("cautious", Phase::Strategize, Some(0.2), false, false).passes());
    }

    #[test]
    fn an_explicit_command_answers_a_threshold_of_one_and_nothing_else() {
        assert_eq!(
            gate("manual", Phase::Execute, Some(0.2), true, false),
            GateOutcome::Pass(Approval::ByCommand)
        );
        // Not what reaches outside the sandbox, and not a threshold between.
        assert!(!gate("manual", Phase::Execute, Some(0.9), true, true).passes());
        assert!(!gate("cautious", Phase::Execute, Some(0.7), true, false).passes());
    }

    // PROF-014
    #[test]
    fn required_human_approval_asks_for_each_decision_of_execute_whatever_was_commanded() {
        let mut profile = built_in_profile("ci").unwrap();
        profile.safety.require_human_approval = true;
        assert!(decision_gate(&profile, Phase::Strategize, Some(0.1), 0.5, false, false).passes());
        assert_eq!(
            decision_gate(&profile, Phase::Execute, Some(1.0), 0.5, true, false),
            GateOutcome::Ask { flag: "require_human_approval", threshold: 1.0, confidence: 1.0 }
        );
    }

    // PROF-026
    #[test]
    fn computed_confidence_is_the_mean_with_risks_turned_round() {
        let unknown = computed_confidence(&Factors::default());
        assert_eq!(unknown.score, 0.5);
        assert!(unknown.factors.iter().all(|f| !f.known && f.value == 0.5));
        let sure = Factors {
            past_success_rate: Some(1.0),
            codebase_familiarity: Some(1.0),
            risk_assessment: Some(0.0),
            invariant_complexity: Some(0.0),
            ..Factors::default()
        };
        assert_eq!(computed_confidence(&sure).score, 0.99);
        // C-19: the actor's own word is one factor; what failed before counts against it.
        let doubted = Factors { actor_confidence: Some(0.5), known_failures: Some(0.5), ..sure };
        let doubted = computed_confidence(&doubted);
        assert_eq!(doubted.factors.len(), 6);
        assert!((doubted.score - 5.0 / 6.0).abs() < 1e-6, "{}", doubted.score);
        let risky = Factors { risk_assessment: Some(1.0), ..sure };
        assert_eq!(computed_confidence(&risky).score, 0.75);
        let broken = Factors { past_success_rate: Some(f64::NAN), ..Factors::default() };
        assert_eq!(computed_confidence(&broken), unknown);
    }

    proptest! {
        // Zero never asks; more confidence never turns a pass into a question; a command never makes a gate stricter.
        #[test]
        fn gates_are_monotonic(
            low in 0.0..=1.0f64, more in 0.0..=1.0f64, commanded: bool, outside: bool, execute: bool,
        ) {
            let phase = if execute { Phase::Execute } else { Phase::Strategize };
            let high = (low + more).min(1.0);
            for profile in built_in_profiles() {
                let at = |confidence, commanded| {
                    decision_gate(&profile, phase, Some(confidence), 0.5, commanded, outside).passes()
                };
                prop_assert!(!at(low, commanded) || at(high, commanded));
                prop_assert!(!at(low, false) || at(low, true));
                if let GateOutcome::Ask { threshold, confidence, .. } =
                    decision_gate(&profile, phase, Some(low), 0.5, commanded, outside)
                {
                    prop_assert!(threshold >= 1.0 || confidence < threshold);
                    prop_assert!(threshold > 0.0);
                }
            }
        }

        #[test]
        fn computed_confidence_stays_in_its_range(
            a in proptest::option::of(any::<f64>()), b in proptest::option::of(any::<f64>()),
            c in proptest::option::of(any::<f64>()), d in proptest::option::of(any::<f64>()),
        ) {
            let score = computed_confidence(&Factors {
                past_success_rate: a, codebase_familiarity: b, risk_assessment: c, invariant_complexity: d,
                actor_confidence: a, known_failures: d,
            }).score;
            prop_assert!((0.0..=MAX_COMPUTED_CONFIDENCE).contains(&score));
        }
    }
}
