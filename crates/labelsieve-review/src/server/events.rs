//! Events for a browser, as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::response::sse;
use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::{Event, Listener, Session};

/// Events that a slow reader may be behind. One that is further behind is cut off: it connects again and fetches everything.
const MAX_WAITING: usize = 1024;

/// The events of a session from now on.
pub(crate) struct Events(Receiver<sse::Event>);

impl Events {
    pub(crate) fn of(session: &Session) -> Events {
        let (sender, receiver) = channel(MAX_WAITING);
        session.listen(Box::new(Tab { sender: Mutex::new(Some(sender)) }));
        Events(receiver)
    }
}

/// The session's end of a stream.
struct Tab {
    /// None once the reader was too far behind, which ends its stream.
    sender: Mutex<Option<Sender<sse::Event>>>,
}

impl Listener for Tab {
    fn tell(&self, event: &Event) {
        let data = serde_json::to_string(event).unwrap_or_default(); // plain numbers and texts
        let event = sse::Event::default().event(event.name()).data(data);
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        *sender = sender.take().filter(|sender| sender.try_send(event).is_ok());
    }

    fn is_open(&self) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }
}

impl Stream for Events {
    type Item = Result<sse::Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}
