//! The way of a batch to the device: two page-locked buffers and a stream of its own, so that one batch is sent while the
//! device works on the one before.
#![expect(unsafe_code, reason = "page-locked memory comes uninitialised")]

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, PinnedHostSlice};
use rayon::prelude::*;

use crate::error::Result;
use crate::gpu::at;

/// Bytes that are sent as soon as they are in place, while the next are being copied.
const PORTION: usize = 4 << 20;

/// Bytes that one thread copies at a time.
const CHUNK: usize = 256 << 10;

pub(crate) struct Staging {
    copies: Arc<CudaStream>,
    turns: [Option<Turn>; 2],
    next: usize,
}

struct Turn {
    host: PinnedHostSlice<u8>,
    device: CudaSlice<u8>,
    /// The device has what the host buffer held.
    sent: Option<CudaEvent>,
    /// The device is done with what its buffer held.
    used: Option<CudaEvent>,
}

/// A batch on the device.
pub(crate) struct Parcel {
    turn: usize,
    /// The address of the pixels.
    pub pixels: u64,
    /// The address of what follows them.
    pub rest: u64,
}

impl Staging {
    pub fn new(stream: &CudaStream) -> Result<Staging> {
        Ok(Staging { copies: stream.context().new_stream()?, turns: [None, None], next: 0 })
    }

    /// Sends `pixels` and `rest`; what is queued on `stream` afterwards finds them there.
    pub fn send(&mut self, stream: &Arc<CudaStream>, pixels: &[u8], rest: &[u8]) -> Result<Parcel> {
        let number = self.next;
        let start = pixels.len().next_multiple_of(16);
        self.next = 1 - number;
        let turn = ready(&mut self.turns[number], &self.copies, stream, start + rest.len())?;
        let host = turn.host.as_mut_slice()?;
        host[start..start + rest.len()].copy_from_slice(rest);
        for (portion, from) in pixels.chunks(PORTION).enumerate() {
            let range = portion * PORTION..portion * PORTION + from.len();
            let to = &mut host[range.clone()];
            to.par_chunks_mut(CHUNK)
                .zip(from.par_chunks(CHUNK))
                .for_each(|(to, from)| to.copy_from_slice(from));
            self.copies.memcpy_htod(&*to, &mut turn.device.slice_mut(range))?;
        }
        let range = start..start + rest.len();
        if !rest.is_empty() {
            self.copies.memcpy_htod(&host[range.clone()], &mut turn.device.slice_mut(range))?;
        }
        let sent = self.copies.record_event(None)?;
        stream.wait(&sent)?;
        turn.sent = Some(sent);
        let pixels = at(&turn.device);
        Ok(Parcel { turn: number, pixels, rest: pixels + start as u64 })
    }

    /// Everything that reads the parcel is queued on `stream` by now.
    pub fn done(&mut self, stream: &CudaStream, parcel: Parcel) -> Result<()> {
        if let Some(turn) = &mut self.turns[parcel.turn] {
            turn.used = Some(stream.record_event(None)?);
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The device may still be reading from the host's buffers. A failure here was reported elsewhere.
        let _ = self.copies.synchronize();
    }
}

/// The buffers of a turn, large enough and free again.
fn ready<'a>(
    turn: &'a mut Option<Turn>,
    copies: &Arc<CudaStream>,
    stream: &Arc<CudaStream>,
    bytes: usize,
) -> Result<&'a mut Turn> {
    if turn.as_ref().is_none_or(|turn| turn.host.len() < bytes) {
        copies.synchronize()?;
        stream.synchronize()?;
        *turn = None;
        // SAFETY: what is sent is written before.
        let (host, device) = unsafe { (copies.context().alloc_pinned(bytes)?, stream.alloc(bytes)?) };
        stream.synchronize()?; // the other stream may write to it at once
        *turn = Some(Turn { host, device, sent: None, used: None });
    }
    let turn = turn.as_mut().expect("made above");
    if let Some(sent) = turn.sent.take() {
        sent.synchronize()?;
    }
    if let Some(used) = turn.used.take() {
        copies.wait(&used)?;
    }
    Ok(turn)
}
