//! Reading ahead on a thread of its own.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use super::source::Part;
use super::{EncodedImage, ImageError, ImageResult};
use crate::DataError;

/// Images read ahead: enough to keep decoders busy, few enough for large photos.
const AHEAD: usize = 64;

/// Takes what a reader finds; breaks when nobody wants more.
pub(super) type Sink<'a> = dyn FnMut(ImageResult) -> ControlFlow<()> + 'a;

/// Images in their fixed order. Dropping it stops the reading.
#[derive(Debug)]
pub struct ImageStream {
    images: Receiver<ImageResult>,
    reader: Option<JoinHandle<()>>,
}

impl ImageStream {
    /// Reads `parts` one after the other, without the first `skip` images.
    pub(super) fn start(parts: Vec<Part>, skip: usize) -> std::io::Result<ImageStream> {
        let (sender, images) = sync_channel(AHEAD);
        let reader = std::thread::Builder::new().name("images".to_owned()).spawn(move || {
            let mut skip = skip;
            for part in &parts {
                let mut sink = |image| match skip.checked_sub(1) {
                    Some(rest) => {
                        skip = rest;
                        ControlFlow::Continue(())
                    }
                    None if sender.send(image).is_ok() => ControlFlow::Continue(()),
                    None => ControlFlow::Break(()),
                };
                if part.visit(&mut sink).is_break() {
                    return;
                }
            }
        })?;
        Ok(ImageStream { images, reader: Some(reader) })
    }
}

impl Iterator for ImageStream {
    type Item = ImageResult;

    fn next(&mut self) -> Option<ImageResult> {
        let image = self.images.recv().ok();
        if image.is_none()
            && let Some(Err(panic)) = self.reader.take().map(JoinHandle::join)
        {
            std::panic::resume_unwind(panic); // a shorter stream must not look like a complete one
        }
        image
    }
}

/// An image with everything known about it but whether its bytes can be had.
pub(super) fn deliver(
    id: &str,
    label: Option<&str>,
    bytes: Result<Vec<u8>, DataError>,
    sink: &mut Sink<'_>,
) -> ControlFlow<()> {
    sink(match bytes {
        Ok(bytes) => Ok(EncodedImage { id: id.to_owned(), label: label.map(str::to_owned), bytes }),
        Err(error) => Err(ImageError { id: id.to_owned(), error }),
    })
}
