//! Events for a browser, as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::response::sse;
use futures_core::Stream;
use labelsieve_pipeline::review::{Event, Session};
use tokio::sync::mpsc::{Receiver, channel};

/// Events that a slow reader may be behind. One that is further behind is cut off: it connects again and fetches everything.
const MOST_WAITING: usize = 1024;

/// The events of a session from now on.
pub(crate) struct Events(Receiver<sse::Event>);

impl Events {
    pub(crate) fn of(session: &Session) -> Events {
        let (sender, receiver) = channel(MOST_WAITING);
        session.listen(Box::new(move |event: &Event| {
            let data = serde_json::to_string(event).unwrap_or_default(); // plain numbers and texts
            sender.try_send(sse::Event::default().event(event.name()).data(data)).is_ok()
        }));
        Events(receiver)
    }
}

impl Stream for Events {
    type Item = Result<sse::Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}
