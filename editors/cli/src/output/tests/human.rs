//! Values as people read them.

use serde_json::json;

use super::*;
use crate::output::human::*;

#[test]
fn numbers_sizes_times_and_money() {
    assert_eq!([0, 999, 1000, 1_247, 1_234_567].map(count), ["0", "999", "1,000", "1,247", "1,234,567"]);
    assert_eq!(
        (counted(1, "plan", "plans"), counted(0, "plan", "plans")),
        ("1 plan".into(), "0 plans".into())
    );
    assert_eq!(
        [0, 1023, 1024, 43_008, 1_048_575, 1_048_576, 1_572_864, 123_731_968, u64::MAX].map(bytes),
        ["0 B", "1023 B", "1 KB", "42 KB", "1 MB", "1 MB", "1.5 MB", "118 MB", "16 EB"]
    );
    assert_eq!(
        [0, 42, 600, 12_400, 59_949, 59_950, 192_000, 3_599_499, 3_599_500, 3_840_000].map(millis),
        ["0ms", "42ms", "0.6s", "12.4s", "59.9s", "1m 00s", "3m 12s", "59m 59s", "1h 00m", "1h 04m"]
    );
    assert_eq!([72, 434, 360_000].map(clock), ["00:01:12", "00:07:14", "100:00:00"]);
    assert_eq!(
        [0.0184, 0.0, 1.5, 1234.5, -0.5].map(money),
        ["$0.0184", "$0.0000", "$1.50", "$1,234.50", "$-0.5000"]
    );
    assert_eq!((percent(0.42), yes_no(true), yes_no(false)), ("42%".into(), "yes", "no"));
    assert_eq!(minutes("2026-02-08T13:46:59+01:00"), "2026-02-08 12:46");
    assert_eq!(minutes("yesterday"), "yesterday");
    assert_eq!(
        [0, 4, 5, 240, 10_800, 172_800, -9].map(|s| ago(1_000_000 - s, 1_000_000)),
        ["just now", "just now", "5s ago", "4m ago", "3h ago", "2d ago", "just now"]
    );
}

#[test]
fn json_values_are_shown_by_their_kind() {
    let shown = |kind, value| show(kind, &value).text();
    assert_eq!(shown(Kind::Auto, json!(null)), "-");
    assert_eq!(shown(Kind::Auto, json!(true)), "yes");
    assert_eq!(shown(Kind::Auto, json!("2026-02-08T12:46:00Z")), "2026-02-08 12:46");
    assert_eq!(shown(Kind::Text, json!("2026-02-08T12:46:00Z")), "2026-02-08T12:46:00Z");
    assert_eq!(shown(Kind::Auto, json!(["a", 1, null])), "a, 1, -");
    assert_eq!(shown(Kind::Auto, json!([])), "(none)");
    assert_eq!(shown(Kind::Auto, json!({"a": 1, "b": {}})), "a: 1, b: (none)");
    assert_eq!(shown(Kind::Count, json!(-1247)), "-1,247");
    assert_eq!(shown(Kind::Count, json!(1247.25)), "1,247.25");
    assert_eq!(shown(Kind::Bytes, json!(1024)), "1 KB");
    assert_eq!(shown(Kind::Millis, json!("soon")), "soon");
    assert_eq!(show(Kind::State, &json!("errored")).spans[0].tone, Tone::Bad);
}

// CLI-026
#[test]
fn ids_are_cut_to_what_tells_them_apart() {
    let one = "01HXM7A9Q1Q8K2E9H7K3W2M8AB";
    let two = "01HXM7A9Q1QZZZZZZZZZZZZZZZ";
    let far = "01HXM6R3Q1Q8K2E9H7K3W2M8AB";
    assert_eq!(short_ids(&[one, two, far], 8), ["01HXM7A9Q1Q8", "01HXM7A9Q1QZ", "01HXM6R3"]);
    assert_eq!(short_ids(&[one, one], 8), ["01HXM7A9", "01HXM7A9"]);
    assert_eq!(
        short_ids(&["local/name", "cp_01HXM7A9Q1Q8K2E9H7K3W2M8AB", "ä"], 8),
        ["local/name", "cp_01HXM7A9", "ä"]
    );
    assert_eq!((short_id(one), short_id("x")), ("01HXM7A9Q1", "x"));
}

proptest::proptest! {
    #[test]
    fn short_ids_never_begin_another_id(ids in proptest::collection::vec("0[01][A0]{24}", 1..12)) {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        for (id, short) in ids.iter().zip(short_ids(&ids, 8)) {
            proptest::prop_assert!(id.starts_with(&short) && short.len() >= 8);
            proptest::prop_assert!(ids.iter().all(|other| other == id || !other.starts_with(&short)));
        }
    }
}
