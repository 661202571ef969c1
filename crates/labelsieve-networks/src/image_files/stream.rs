//! Reads ahead on a separate thread.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use labelsieve_files::DataError;

use super::source::Part;
use super::{EncodedImage, Extent, ImageError, ImageResult};

/// Images read ahead: enough to keep decoders busy.
const AHEAD: usize = 64;

/// Their bytes, all together. One image alone may have more.
const AHEAD_BYTES: u64 = 64 << 20;

/// Receives the images of a reader; breaks to stop it.
pub(super) type Sink<'a> = dyn FnMut(ImageResult) -> ControlFlow<()> + 'a;

/// Images in their fixed order. Dropping it stops the thread.
#[derive(Debug)]
pub struct ImageStream {
    images: Receiver<ImageResult>,
    waiting: Arc<Waiting>,
    reader: Option<JoinHandle<()>>,
}

impl ImageStream {
    /// Reads `parts` one after the other, without the first `skip` images.
    pub(super) fn start(parts: Vec<Part>, skip: usize) -> std::io::Result<ImageStream> {
        let (sender, images) = sync_channel(AHEAD);
        let waiting = Arc::new(Waiting::default());
        let buffered = waiting.clone();
        let reader = std::thread::Builder::new().name("images".to_owned()).spawn(move || {
            let mut skip = skip;
            for part in &parts {
                let mut sink = |image| match skip.checked_sub(1) {
                    Some(rest) => {
                        skip = rest;
                        ControlFlow::Continue(())
                    }
                    None if buffered.add(size(&image)) && sender.send(image).is_ok() => {
                        ControlFlow::Continue(())
                    }
                    None => ControlFlow::Break(()),
                };
                if part.visit(&mut sink).is_break() {
                    return;
                }
            }
        })?;
        Ok(ImageStream { images, waiting, reader: Some(reader) })
    }
}

impl Drop for ImageStream {
    fn drop(&mut self) {
        self.waiting.abandon();
    }
}

fn size(image: &ImageResult) -> u64 {
    image.as_ref().map_or(0, |image| image.bytes.len() as u64)
}

/// Counts the bytes of the images that have been read but not taken.
#[derive(Debug, Default)]
struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: u64,
    is_abandoned: bool,
}

impl Waiting {
    /// Waits until `bytes` more fit; false when the stream was dropped.
    fn add(&self, bytes: u64) -> bool {
        let is_full = |state: &mut State| {
            state.bytes > 0 && state.bytes.saturating_add(bytes) > AHEAD_BYTES && !state.is_abandoned
        };
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.changed.wait_while(state, is_full).unwrap_or_else(PoisonError::into_inner);
        state.bytes += bytes;
        !state.is_abandoned
    }

    fn remove(&self, bytes: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes -= bytes;
        self.changed.notify_all();
    }

    fn abandon(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_abandoned = true;
        self.changed.notify_all();
    }
}

impl Iterator for ImageStream {
    type Item = ImageResult;

    fn next(&mut self) -> Option<ImageResult> {
        let image = self.images.recv().ok();
        self.waiting.remove(image.as_ref().map_or(0, size));
        if image.is_none()
            && let Some(Err(panic)) = self.reader.take().map(JoinHandle::join)
        {
            std::panic::resume_unwind(panic); // a shorter stream must not look like a complete one
        }
        image
    }
}

/// Passes an image to the sink, or the error of reading its bytes.
pub(super) fn deliver(
    id: &str,
    label: Option<&str>,
    bytes: Result<Vec<u8>, DataError>,
    sink: &mut Sink<'_>,
) -> ControlFlow<()> {
    sink(match bytes {
        Ok(bytes) => Ok(EncodedImage { id: id.to_owned(), label: label.map(str::to_owned), bytes }),
        Err(error) => Err(ImageError { id: id.to_owned(), error, extent: Extent::Image }),
    })
}
