//! Which jobs share the device's memory: pure arithmetic, so that it can be tested without a device.

/// What a job costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JobCost {
    /// The pool it reads.
    pub pool: usize,
    /// Bytes from its preparation to its result.
    pub bytes: usize,
}

/// What a pool costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PoolCost {
    /// Bytes while its jobs are prepared.
    pub while_loaded: usize,
    /// Bytes that its jobs share until their results are there, once in a batch.
    pub shared: usize,
}

/// A job that does not fit even alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TooLarge {
    pub job: usize,
    pub needed: usize,
}

/// Batches of jobs, and the jobs that are in none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub batches: Vec<Vec<usize>>,
    /// Bytes of the budget that each batch leaves.
    pub spare: Vec<usize>,
    pub too_large: Vec<TooLarge>,
}

impl Plan {
    /// Splits jobs into batches that are trained together.
    ///
    /// Jobs are ordered by pool, the largest pool first, so that a pool is brought in once and only one is there at a time.
    /// A batch takes jobs as long as they, what they share and the largest of its pools fit `budget`.
    pub fn new(pools: &[PoolCost], jobs: &[JobCost], budget: usize) -> Plan {
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order
            .sort_by_key(|&job| (std::cmp::Reverse(pools[jobs[job].pool].while_loaded), jobs[job].pool, job));
        let Plan { mut batches, mut spare, mut too_large } = Plan::default();
        let mut filled = 0;
        let mut largest_pool = 0;
        let mut last_pool = None;
        for job in order {
            let JobCost { pool, bytes } = jobs[job];
            let PoolCost { while_loaded, shared } = pools[pool];
            let alone = while_loaded + shared + bytes;
            if alone > budget {
                too_large.push(TooLarge { job, needed: alone });
                continue;
            }
            let more = bytes + if last_pool == Some(pool) { 0 } else { shared };
            match batches.last_mut() {
                Some(batch) if filled + more + largest_pool.max(while_loaded) <= budget => {
                    batch.push(job);
                    filled += more;
                    largest_pool = largest_pool.max(while_loaded);
                }
                _ => {
                    batches.push(vec![job]);
                    (filled, largest_pool) = (shared + bytes, while_loaded);
                }
            }
            last_pool = Some(pool);
            spare.truncate(batches.len() - 1);
            spare.push(budget - filled - largest_pool);
        }
        Plan { batches, spare, too_large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pools of which nothing stays.
    fn pools(while_loaded: &[usize]) -> Vec<PoolCost> {
        while_loaded.iter().map(|&while_loaded| PoolCost { while_loaded, shared: 0 }).collect()
    }

    fn jobs(costs: &[(usize, usize)]) -> Vec<JobCost> {
        costs.iter().map(|&(pool, bytes)| JobCost { pool, bytes }).collect()
    }

    #[test]
    fn pools_come_largest_first_and_their_jobs_stay_together() {
        let jobs = jobs(&[(0, 1), (1, 1), (0, 1), (2, 1)]);
        assert_eq!(Plan::new(&pools(&[10, 30, 20]), &jobs, 1000).batches, [[1, 3, 0, 2]]);
    }

    #[test]
    fn a_batch_and_its_largest_pool_fit_the_budget() {
        // Pool 0 takes 50 of 100: two jobs of 25 fit beside it, the third waits; then pool 1's share the rest.
        let jobs = jobs(&[(0, 25), (0, 25), (0, 25), (1, 20), (1, 20)]);
        assert_eq!(Plan::new(&pools(&[50, 10]), &jobs, 100).batches, [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn what_jobs_share_counts_once_in_each_batch() {
        // Pool 0 takes 20 and leaves 30: beside them, five jobs of 10 fit 100, where each with its own 30 would make it two.
        let costs = [PoolCost { while_loaded: 20, shared: 30 }, PoolCost { while_loaded: 10, shared: 40 }];
        let same = jobs(&[(0, 10); 6]);
        assert_eq!(Plan::new(&costs, &same, 100).batches, [vec![0, 1, 2, 3, 4], vec![5]]);
        // Another pool brings what its jobs share along: 30 + 10 + 40 + 5 and 20 fit 105, but not 104.
        let both = jobs(&[(0, 10), (1, 5)]);
        assert_eq!(Plan::new(&costs, &both, 105).batches, [vec![0, 1]]);
        assert_eq!(Plan::new(&costs, &both, 104).batches, [vec![0], vec![1]]);
        // Alone it counts too.
        let too_large = vec![TooLarge { job: 0, needed: 60 }];
        assert_eq!(Plan::new(&costs, &both[..1], 59), Plan { too_large, ..Plan::default() });
    }

    #[test]
    fn every_job_is_done_once_and_no_budget_is_exceeded() {
        let stream = labelsieve_numerics::random::Stream::new(5);
        for case in 0..200u64 {
            let draws = stream.branch(case);
            let pools: Vec<PoolCost> = (0..1 + draws.below(0, 9) as u64)
                .map(|p| PoolCost {
                    while_loaded: draws.below(10 + p, 300),
                    shared: draws.below(50 + p, 200),
                })
                .collect();
            let jobs: Vec<JobCost> = (0..draws.below(1, 60) as u64)
                .map(|j| JobCost {
                    pool: draws.below(100 + j, pools.len()),
                    bytes: draws.below(1000 + j, 300),
                })
                .collect();
            let budget = 800 + draws.below(2, 2000);
            let Plan { batches, spare, too_large } = Plan::new(&pools, &jobs, budget);
            assert_eq!(too_large, []);
            let mut seen: Vec<usize> = batches.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..jobs.len()).collect::<Vec<_>>());
            assert_eq!(batches.len(), spare.len());
            for (batch, spare) in batches.into_iter().zip(spare) {
                let bytes: usize = batch.iter().map(|&j| jobs[j].bytes).sum();
                let mut there: Vec<usize> = batch.iter().map(|&j| jobs[j].pool).collect();
                there.dedup();
                let shared: usize = there.iter().map(|&pool| pools[pool].shared).sum();
                let loaded = there.iter().map(|&pool| pools[pool].while_loaded).max().unwrap();
                assert_eq!(bytes + shared + loaded + spare, budget);
            }
        }
    }

    #[test]
    fn a_job_that_never_fits_is_named_and_the_others_are_planned() {
        let jobs = jobs(&[(0, 10), (0, 60), (1, 20)]);
        let too_large = vec![TooLarge { job: 1, needed: 110 }];
        assert_eq!(
            Plan::new(&pools(&[50, 30]), &jobs, 100),
            Plan { batches: vec![vec![0, 2]], spare: vec![20], too_large }
        );
    }
}
