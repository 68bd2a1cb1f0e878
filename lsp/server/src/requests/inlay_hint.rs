//! `textDocument/inlayHint`: a short mark of the decision at the end of the first line it is behind.

use tower_lsp::lsp_types::{InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip};

use super::lines::whole_lines;
use super::provenance::{Place, PlaceKind};
use super::{Shared, brief};

impl Shared {
    pub async fn inlay_hint(&self, params: InlayHintParams) -> Option<Vec<InlayHint>> {
        if !self.settings.inlay_hints() {
            return None;
        }
        let (_, document) = self.document(&params.text_document.uri)?;
        let found = self.provenance(&document).await?;
        let (start, end) = (params.range.start.line, params.range.end.line);
        let starting = found.within(start, end).filter(|place| (start..=end).contains(&place.first));
        Some(
            starting
                .map(|place| InlayHint {
                    position: whole_lines(document.text(), place.first, place.first).end,
                    label: InlayHintLabel::String(label(place)),
                    kind: None,
                    text_edits: None,
                    tooltip: Some(InlayHintTooltip::String(tooltip(place))),
                    padding_left: Some(true),
                    padding_right: None,
                    data: None,
                })
                .collect(),
        )
    }
}

/// What was chosen and how sure, of the strategy behind a place where there is one.
pub(super) fn verdict(place: &Place) -> (&str, Option<f64>) {
    let segment = &place.segment;
    match &segment.strategy {
        Some(strategy) => (&strategy.chosen, strategy.confidence.or(segment.confidence)),
        None => (&segment.chosen, segment.confidence),
    }
}

fn label(place: &Place) -> String {
    let (chosen, confidence) = verdict(place);
    let confidence = confidence.map(|confidence| format!(" {confidence:.2}")).unwrap_or_default();
    let word = match place.kind {
        PlaceKind::Written | PlaceKind::Deleted => "decided",
        PlaceKind::WouldChange | PlaceKind::WouldInsert | PlaceKind::WouldDelete => "proposed",
    };
    format!("{word}{confidence}: {}", brief(chosen, 40))
}

fn tooltip(place: &Place) -> String {
    let segment = &place.segment;
    let question = segment.strategy.as_ref().map_or(&segment.question, |strategy| &strategy.question);
    brief(question, 200)
}
