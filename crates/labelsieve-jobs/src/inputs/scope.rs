//! Which classes of a run are scored here: all, or those of one part.

/// The classes that are scored, by their positions among all of the run, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    classes: Vec<usize>,
    part: Option<usize>,
}

impl Scope {
    /// All of `n_classes`.
    pub fn whole(n_classes: usize) -> Scope {
        Scope { classes: (0..n_classes).collect(), part: None }
    }

    /// Those of the part with this index.
    pub fn part(index: usize, mut classes: Vec<usize>) -> Scope {
        classes.sort_unstable();
        Scope { classes, part: Some(index) }
    }

    /// Positions of the classes, ascending.
    pub fn classes(&self) -> &[usize] {
        &self.classes
    }

    /// Whether a class is among them.
    pub fn contains(&self, class: usize) -> bool {
        self.classes.binary_search(&class).is_ok()
    }

    /// Whether these are all classes of the run, and not those of a part.
    pub fn is_whole(&self) -> bool {
        self.part.is_none()
    }

    /// Whether what belongs to no class at all is told here: of several parts, the first one does.
    pub fn tells_of_strays(&self) -> bool {
        self.part.is_none_or(|index| index == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_alone_tells_of_what_belongs_to_no_class() {
        let first = Scope::part(0, vec![4, 1]);
        assert_eq!((first.classes(), first.contains(1), first.contains(2)), (&[1, 4][..], true, false));
        assert!(first.tells_of_strays() && !first.is_whole());
        assert!(!Scope::part(1, vec![0]).tells_of_strays());
        assert!(Scope::whole(2).tells_of_strays() && Scope::whole(2).contains(1));
    }
}
