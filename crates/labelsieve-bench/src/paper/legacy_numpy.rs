//! The part of NumPy's legacy generator that the paper's episodes need: `RandomState(seed).choice(n, k, replace=False)`.
//!
//! The clean examples of the Places365 experiments were drawn with it, so the same numbers have to be drawn here.
//! NumPy has frozen this stream (NEP 19).

const STATE_LEN: usize = 624;
const SHIFT: usize = 397;

/// The Mersenne Twister MT19937, seeded as `numpy.random.RandomState(seed)`.
#[derive(Clone, Debug)]
pub struct LegacyNumpyRandom {
    state: [u32; STATE_LEN],
    next: usize,
}

impl LegacyNumpyRandom {
    /// The generator of `numpy.random.RandomState(seed)`.
    pub fn new(seed: u32) -> LegacyNumpyRandom {
        let mut state = [seed; STATE_LEN];
        for i in 1..STATE_LEN {
            let previous = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(previous ^ (previous >> 30)).wrapping_add(i as u32);
        }
        LegacyNumpyRandom { state, next: STATE_LEN }
    }

    /// The next `k` distinct numbers below `n`, as `choice(n, k, replace=False)`: NumPy shuffles all `n` and keeps `k`.
    ///
    /// # Panics
    /// When `k` is more than `n`, or `n` more than 2³², beyond which NumPy draws in another way.
    pub fn choice_without_replacement(&mut self, n: usize, k: usize) -> Vec<usize> {
        assert!(k <= n, "{k} distinct numbers out of {n}");
        assert!(u32::try_from(n.saturating_sub(1)).is_ok(), "{n} numbers do not fit in 32 bits");
        let mut numbers: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            numbers.swap(i, self.up_to(i as u32) as usize);
        }
        numbers.truncate(k);
        numbers
    }

    /// A number from 0 to `max`, by rejection sampling.
    fn up_to(&mut self, max: u32) -> u32 {
        let mask = u32::MAX.checked_shr(max.leading_zeros()).unwrap_or(0);
        loop {
            let value = self.next_u32() & mask;
            if value <= max {
                return value;
            }
        }
    }

    fn next_u32(&mut self) -> u32 {
        if self.next == STATE_LEN {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..STATE_LEN {
            let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % STATE_LEN] & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + SHIFT) % STATE_LEN] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_draws_are_those_of_numpy() {
        // >>> g = np.random.RandomState(1)
        // >>> for n, k in [(10, 3), (5000, 6), (7, 7), (1, 1), (65, 4)]:
        // ...     print(g.choice(n, k, replace=False).tolist())
        let mut g = LegacyNumpyRandom::new(1);
        assert_eq!(g.choice_without_replacement(10, 3), [2, 9, 6]);
        assert_eq!(g.choice_without_replacement(5000, 6), [4004, 1739, 2471, 1669, 1521, 763]);
        assert_eq!(g.choice_without_replacement(7, 7), [1, 3, 2, 5, 0, 4, 6]);
        assert_eq!(g.choice_without_replacement(1, 1), [0]);
        assert_eq!(g.choice_without_replacement(65, 4), [10, 4, 27, 26]);
    }

    #[test]
    fn the_draws_of_an_episode_are_those_of_numpy() {
        // >>> g = np.random.RandomState(5)
        // >>> [g.choice(1000, 5, replace=False).tolist() for _ in range(3)]
        let mut g = LegacyNumpyRandom::new(5);
        let draws: Vec<_> = (0..3).map(|_| g.choice_without_replacement(1000, 5)).collect();
        let expected = [[544, 515, 193, 11, 279], [120, 363, 909, 33, 531], [806, 170, 961, 12, 360]];
        assert_eq!(draws, expected);
    }

    #[test]
    fn the_smallest_and_the_largest_seed_are_those_of_numpy() {
        // >>> np.random.RandomState(0).choice(1300, 5, replace=False).tolist()
        // >>> np.random.RandomState(4294967295).choice(100, 5, replace=False).tolist()
        let first = LegacyNumpyRandom::new(0).choice_without_replacement(1300, 5);
        assert_eq!(first, [579, 1014, 759, 446, 186]);
        let last = LegacyNumpyRandom::new(u32::MAX).choice_without_replacement(100, 5);
        assert_eq!(last, [92, 36, 80, 77, 31]);
    }

    #[test]
    fn nothing_can_be_drawn_from_nothing() {
        assert!(LegacyNumpyRandom::new(0).choice_without_replacement(0, 0).is_empty());
    }
}
