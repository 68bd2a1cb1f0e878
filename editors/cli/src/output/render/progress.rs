//! Progress: a list of steps, and on a live terminal a bar or a spinner with times.

use std::time::Duration;

use crate::output::element::{Mark, Outcome, Progress, Step};
use crate::output::human;
use crate::output::layout::{self, Line};
use crate::output::styled::Tone;

use super::View;
use super::frame::frame;

/// The pictures of the spinner, ten a second.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The picture of the spinner at a moment.
pub(super) fn spinner(now: Duration) -> &'static str {
    FRAMES[(now.as_millis() / 100) as usize % FRAMES.len()]
}

/// What is done of what; steps count where no total was given. A total of nothing means that nobody knows.
fn counts(progress: &Progress) -> Option<(u64, u64)> {
    match progress.total {
        Some(0) => None,
        Some(total) => Some((progress.current.min(total), total)),
        None if progress.steps.is_empty() => None,
        None => {
            let over = |s: &&Step| matches!(s.mark, Mark::Done | Mark::Error | Mark::Skipped);
            Some((progress.steps.iter().filter(over).count() as u64, progress.steps.len() as u64))
        }
    }
}

fn outcome(progress: &Progress) -> Outcome {
    let failed = progress.steps.iter().any(|s| s.mark == Mark::Error);
    if progress.outcome == Outcome::Done && failed { Outcome::Failed } else { progress.outcome }
}

pub(super) fn rows(progress: &Progress, view: &View) -> Vec<Line> {
    if view.rich {
        return rich(progress, view);
    }
    let mut label = view.own(&progress.label, if view.boxed { Tone::Title } else { Tone::Plain });
    let end = match outcome(progress) {
        Outcome::Done => ("[done]", Mark::Done, Tone::Good),
        Outcome::Failed => ("[failed]", Mark::Error, Tone::Bad),
        Outcome::Waiting => ("[waiting]", Mark::Waiting, Tone::Warn),
        Outcome::Cancelled => ("[cancelled]", Mark::Waiting, Tone::Warn),
        Outcome::GoesOn => ("[goes on]", Mark::Active, Tone::Plain),
    };
    let steps = progress.steps.iter().map(|step| {
        let mut row = view.mark(step.mark, false);
        row.push(" ", Tone::Plain);
        row.extend(named(step, view));
        row
    });
    if !view.boxed {
        match counts(progress) {
            Some((current, total)) => label.push(format!("  [{current}/{total}]"), Tone::Dim),
            None => label.push(format!(" {}", end.0), end.2),
        }
        return frame(label, steps.collect(), Default::default(), Tone::Plain, view);
    }
    if progress.steps.is_empty() {
        let mut row = view.mark(end.1, false);
        row.push(" ", Tone::Plain);
        row.extend(view.own(&progress.label, Tone::Plain));
        if let Some((current, total)) = counts(progress) {
            row.push(format!("  {}/{}", human::count(current), human::count(total)), Tone::Dim);
        }
        return layout::wrap_hanging(row, view.limit, 2);
    }
    let body = steps.flat_map(|row| layout::wrap_hanging(row, view.inner(), 2)).collect();
    frame(label, body, Default::default(), Tone::Plain, view)
}

fn named(step: &Step, view: &View) -> Line {
    let mut row = view.own(&step.label, if step.mark == Mark::Pending { Tone::Dim } else { Tone::Plain });
    if let Some(note) = &step.note {
        row.push(" (", Tone::Dim);
        row.extend(view.own(note, Tone::Dim));
        row.push(")", Tone::Dim);
    }
    row
}

fn rich(progress: &Progress, view: &View) -> Vec<Line> {
    let width = view.limit.unwrap_or(80);
    let running = view.open && progress.ended.is_none();
    let elapsed = progress.ended.unwrap_or(view.now).saturating_sub(progress.began);
    let mut out = if running {
        headline(progress, elapsed, width, view)
    } else {
        closed(progress, elapsed, width, view)
    };
    let steps: Vec<(Line, Line)> = progress.steps.iter().map(|step| step_row(step, running, view)).collect();
    let widest = steps.iter().map(|(name, time)| name.width() + time.width()).max().unwrap_or(0);
    let column = (widest + 5).max(44).min(width.saturating_sub(1));
    for (mut row, time) in steps {
        let used = row.width() + time.width();
        if time.width() > 0 && used + 2 <= column {
            row.push(format!(" {} ", "·".repeat(column - used - 2)), Tone::Dim);
            row.extend(time);
        }
        out.extend(layout::wrap_hanging(row, view.limit, 4));
    }
    out
}

/// A step's name with its icon, and its time.
fn step_row(step: &Step, running: bool, view: &View) -> (Line, Line) {
    let mut row = Line::of("  ", Tone::Plain);
    row.extend(view.mark(step.mark, running));
    row.push(" ", Tone::Plain);
    row.extend(named(step, view));
    let took = step.began.map(|began| step.ended.unwrap_or(view.now).saturating_sub(began));
    let time = match (step.mark, took) {
        (Mark::Pending | Mark::Waiting | Mark::Skipped, _) | (_, None) => Line::default(),
        (Mark::Active, Some(_)) if !running => Line::default(),
        (_, Some(took)) => Line::of(human::millis(took.as_millis() as u64), Tone::Dim),
    };
    (row, time)
}

/// The first row while work goes on: a bar where the whole is known, else a spinner.
fn headline(progress: &Progress, elapsed: Duration, width: usize, view: &View) -> Vec<Line> {
    let label = view.own(&progress.label, Tone::Strong);
    let Some((current, total)) = counts(progress) else {
        let mut row = Line::of(spinner(view.now), Tone::Info);
        row.push(" ", Tone::Plain);
        row.extend(view.own(&progress.label, Tone::Plain));
        if elapsed >= Duration::from_secs(1) {
            row.push(format!("  {}", human::millis(elapsed.as_secs() * 1000)), Tone::Dim);
        }
        return layout::wrap_hanging(row, view.limit, 2);
    };
    let fraction = current as f64 / total as f64;
    let mut times = format!("  elapsed {}", timer(elapsed));
    if current > 0 && current < total && elapsed >= Duration::from_secs(1) {
        let left = elapsed.as_secs_f64() * (total - current) as f64 / current as f64;
        times += &format!("  ETA {}", timer(Duration::from_secs_f64(left.min(359_999.0))));
    }
    let percent = format!("{:>4}", human::percent(fraction));
    let mut room = width.saturating_sub(label.width() + 1 + percent.len() + times.len() + 1);
    if room < 10 {
        // The bar says more than the clock.
        room += times.len();
        times.clear();
    }
    let mut row = label;
    row.push(" ", Tone::Plain);
    if room >= 6 {
        let bar = room.min(40);
        let filled = ((bar as f64 * fraction) as usize).min(bar);
        row.push("━".repeat(filled), Tone::Info);
        row.push("─".repeat(bar - filled), Tone::Dim);
    }
    row.push(percent, Tone::Plain);
    row.push(times, Tone::Dim);
    layout::wrap_hanging(row, view.limit, 2)
}

/// The first row when it is over.
fn closed(progress: &Progress, elapsed: Duration, width: usize, view: &View) -> Vec<Line> {
    let (icon, tone) = match outcome(progress) {
        Outcome::Done => ("✓", Tone::Good),
        Outcome::Failed => ("✗", Tone::Bad),
        Outcome::Waiting => ("?", Tone::Warn),
        Outcome::Cancelled => ("⚠", Tone::Warn),
        Outcome::GoesOn => ("→", Tone::Plain),
    };
    let mut row = Line::of(icon, tone);
    row.push(" ", Tone::Plain);
    row.extend(view.own(&progress.label, Tone::Plain));
    if let Some((current, total)) = counts(progress) {
        row.push(format!("  {}/{}", human::count(current), human::count(total)), Tone::Dim);
    }
    row.push(format!("  {}", human::millis(elapsed.as_millis() as u64)), Tone::Dim);
    layout::wrap_hanging(row, Some(width), 2)
}

/// `0:01:12`
fn timer(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
