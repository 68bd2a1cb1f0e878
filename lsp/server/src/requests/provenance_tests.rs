use super::*;
use crate::documents::PositionEncoding;
use agents_domain::decision::DecisionStatus;

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn segment(start: u32, end: u32, proposed: Option<&str>, deletion: bool) -> BlamedSegment {
    BlamedSegment {
        start_line: start,
        end_line: end,
        deletion,
        proposed: proposed.is_some(),
        decision_id: ID.parse().unwrap(),
        plan_id: ID.parse().unwrap(),
        question: String::new(),
        chosen: String::new(),
        confidence: None,
        answered: false,
        threshold: None,
        rationale: String::new(),
        alternatives: Vec::new(),
        status: DecisionStatus::Active,
        created: String::new(),
        action: String::new(),
        strategy: None,
        proposed_text: proposed.map(str::to_owned),
        commit: None,
    }
}

fn placed(text: &str, segment: BlamedSegment) -> (u32, u32, PlaceKind) {
    let found = places(vec![segment], &Text::new(text, PositionEncoding::Utf16));
    (found[0].first, found[0].last, found[0].kind)
}

#[test]
fn lines_keep_their_place_and_say_what_happened() {
    let text = "a\nb\nc\n";
    assert_eq!(placed(text, segment(2, 3, None, false)), (1, 2, PlaceKind::Written));
    assert_eq!(placed(text, segment(2, 1, None, true)), (1, 1, PlaceKind::Deleted));
    assert_eq!(placed(text, segment(1, 2, Some("x\n"), false)), (0, 1, PlaceKind::WouldChange));
    assert_eq!(placed(text, segment(1, 1, Some(""), false)), (0, 0, PlaceKind::WouldDelete));
    assert_eq!(placed(text, segment(2, 1, Some("x\n"), true)), (1, 1, PlaceKind::WouldInsert));
}

#[test]
fn what_was_deleted_at_the_end_is_found_at_the_last_line() {
    assert_eq!(placed("a\nb\n", segment(3, 2, None, true)), (1, 1, PlaceKind::Deleted));
    assert_eq!(placed("a\nb", segment(3, 2, None, true)), (1, 1, PlaceKind::Deleted));
    assert_eq!(placed("", segment(1, 0, None, true)), (0, 0, PlaceKind::Deleted));
}

#[test]
fn a_last_line_without_a_break_is_whole() {
    assert_eq!(placed("a\nb", segment(2, 2, None, false)), (1, 1, PlaceKind::Written));
    assert_eq!(placed("a\nb\n", segment(1, 2, None, false)), (0, 1, PlaceKind::Written));
}

#[test]
fn a_line_with_lone_returns_is_several_lines_of_the_protocol() {
    assert_eq!(placed("a\rb\nc\n", segment(1, 1, None, false)), (0, 1, PlaceKind::Written));
    assert_eq!(placed("a\rb\nc\n", segment(2, 2, None, false)), (2, 2, PlaceKind::Written));
}
