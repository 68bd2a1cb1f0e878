//! The eight profiles that come with the program.

use super::{Guards, Profile, Safety, Thresholds};

/// The built-in profiles, from the most to the least asking.
pub fn built_in_profiles() -> Vec<Profile> {
    let rows: [(&str, &str, [f64; 11]); 8] = [
        ("manual", "Asks before everything", [1.0; 11]),
        (
            "review",
            "Decides nothing alone, goes from phase to phase by itself up to Apply",
            [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0],
        ),
        (
            "supervised",
            "Plans by itself; asks before Execute, in Execute and before Apply",
            [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0],
        ),
        (
            "cautious",
            "Goes on where it is sure enough; asks before Apply",
            [0.7, 0.7, 1.0, 0.6, 0.8, 0.7, 0.8, 0.9, 0.7, 0.0, 0.6],
        ),
        (
            "trusted",
            "Plans and executes by itself; asks before reverting and before Apply",
            [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0],
        ),
        (
            "auto",
            "Does everything but Apply by itself",
            [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        ),
        ("ci", "Does everything by itself, in a sandbox with checkpoints", [0.0; 11]),
        ("full-auto", "Does everything by itself, without a safety net", [0.0; 11]),
    ];
    rows.into_iter()
        .map(|(name, description, thresholds)| {
            let free = name == "full-auto";
            Profile {
                name: name.to_owned(),
                description: description.to_owned(),
                thresholds: Thresholds::from_array(thresholds),
                safety: Safety {
                    require_sandbox: !free,
                    require_checkpoints: !free,
                    allow_unsafe_tools: free,
                    ..Safety::default()
                },
                guards: Guards::default(),
            }
        })
        .collect()
}

/// Looks a built-in profile up.
pub fn built_in_profile(name: &str) -> Option<Profile> {
    built_in_profiles().into_iter().find(|p| p.name == name)
}
