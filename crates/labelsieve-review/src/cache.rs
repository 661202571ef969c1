//! Things that are made again when they were thrown away: the ones used last are kept, within a number of bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by number, with a limit to the memory of all of them. The one added last stays, however large it is.
pub(super) struct Cache<V> {
    most_bytes: u64,
    state: Mutex<CacheState<V>>,
}

struct CacheState<V> {
    entries: HashMap<usize, CacheEntry<V>>,
    bytes: u64,
    /// Counts uses.
    clock: u64,
}

struct CacheEntry<V> {
    value: Arc<V>,
    bytes: u64,
    used: u64,
}

impl<V> Cache<V> {
    pub(super) fn new(most_bytes: u64) -> Cache<V> {
        Cache { most_bytes, state: Mutex::new(CacheState { entries: HashMap::new(), bytes: 0, clock: 0 }) }
    }

    pub(super) fn get(&self, number: usize) -> Option<Arc<V>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let now = state.clock;
        let entry = state.entries.get_mut(&number)?;
        entry.used = now;
        Some(entry.value.clone())
    }

    pub(super) fn add(&self, number: usize, value: Arc<V>, bytes: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let entry = CacheEntry { value, bytes, used: state.clock };
        state.bytes += bytes;
        if let Some(old) = state.entries.insert(number, entry) {
            state.bytes -= old.bytes;
        }
        while state.bytes > self.most_bytes && state.entries.len() > 1 {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(&number, _)| number);
            let Some(gone) = oldest.and_then(|number| state.entries.remove(&number)) else { break };
            state.bytes -= gone.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays_within_the_limit() {
        let kept = Cache::new(100);
        kept.add(1, Arc::new('a'), 40);
        kept.add(2, Arc::new('b'), 40);
        assert_eq!(kept.get(1).as_deref(), Some(&'a'));
        kept.add(3, Arc::new('c'), 40); // 2 was used longest ago
        assert_eq!(
            (kept.get(1).is_some(), kept.get(2).is_some(), kept.get(3).is_some()),
            (true, false, true)
        );
        kept.add(4, Arc::new('d'), 1000);
        assert_eq!((kept.get(1), kept.get(3), kept.get(4).as_deref()), (None, None, Some(&'d')));
        kept.add(4, Arc::new('e'), 10);
        kept.add(5, Arc::new('f'), 90);
        assert_eq!((kept.get(4).as_deref(), kept.get(5).as_deref()), (Some(&'e'), Some(&'f')));
    }
}
