//! Names that a dictionary takes from elsewhere when somebody asks for them: a store's, which are sealed one by one.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

use crate::id::NameKind;

/// Names with the ids from 1 to [`NameSource::count`] of each kind, which never change. No two names of a kind are equal.
pub trait NameSource: fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Counts the names of a kind.
    fn count(&self, kind: NameKind) -> u32;

    /// Finds the id of a name.
    fn find(&self, kind: NameKind, name: &[u8]) -> Option<u32>;

    /// Returns the name of an id between 1 and the count. Returns `None` if it cannot be read.
    fn open(&self, kind: NameKind, id: u32) -> Option<String>;
}

/// A name that was opened, or that cannot be; empty if nobody has asked for it.
type OpenedName = OnceLock<Option<Box<str>>>;

/// The names of a source, each with room for the text that was opened.
#[derive(Debug)]
pub(crate) struct LazyNames {
    source: Arc<dyn NameSource>,
    opened: [Box<[OpenedName]>; NameKind::COUNT],
}

impl LazyNames {
    pub fn new(source: Arc<dyn NameSource>) -> Self {
        let opened = NameKind::ALL.map(|kind| (0..source.count(kind)).map(|_| OnceLock::new()).collect());
        Self { source, opened }
    }

    /// Counts the names of a kind.
    pub fn count(&self, kind: NameKind) -> usize {
        self.opened[kind as usize].len()
    }

    /// Finds the id of a name.
    #[cold]
    pub fn find(&self, kind: NameKind, name: &[u8]) -> Option<u32> {
        self.source.find(kind, name)
    }

    /// Returns the name of an id, which is opened when it is asked for first. Returns `None` for the id of another source.
    pub fn name(&self, kind: NameKind, id: u32) -> Option<&str> {
        let slot = self.opened[kind as usize].get((id as usize).checked_sub(1)?)?;
        slot.get_or_init(|| self.source.open(kind, id).map(String::into_boxed_str)).as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dict::{Dictionary, NameResolver};
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Names of owners, and how often one was opened.
    #[derive(Debug, Default)]
    struct OwnerNames(Vec<String>, AtomicU32);

    impl NameSource for OwnerNames {
        fn count(&self, kind: NameKind) -> u32 {
            if kind == NameKind::Owner { self.0.len() as u32 } else { 0 }
        }

        fn find(&self, kind: NameKind, name: &[u8]) -> Option<u32> {
            let index = self.0.iter().position(|known| known.as_bytes() == name)?;
            (kind == NameKind::Owner).then_some(index as u32 + 1)
        }

        fn open(&self, kind: NameKind, id: u32) -> Option<String> {
            assert_eq!(kind, NameKind::Owner);
            self.1.fetch_add(1, Ordering::Relaxed);
            Some(self.0[id as usize - 1].clone())
        }
    }

    proptest! {
        /// A dictionary with a source answers as a dictionary into which the names of the source were interned.
        #[test]
        fn a_source_changes_no_answer(
            sourced in proptest::collection::hash_set("[A-C]{1,3}|[A-B]{31,34}", 0..12),
            steps in proptest::collection::vec((0u8..8, "[A-C]{1,3}|[A-B]{31,34}", 0u32..24, any::<bool>()), 0..60),
        ) {
            let sourced: Vec<String> = sourced.into_iter().collect();
            let mut twin = Dictionary::default();
            for name in &sourced {
                twin.intern(NameKind::Owner, name.as_bytes()).unwrap();
            }
            let source = Arc::new(OwnerNames(sourced, AtomicU32::new(0)));
            let mut lazy = Dictionary::with_source(source.clone());
            prop_assert_eq!(source.1.load(Ordering::Relaxed), 0, "a name is opened before it is asked for");
            for (step, name, id, is_owner) in &steps {
                let kind = if *is_owner { NameKind::Owner } else { NameKind::Desk };
                let name = name.as_bytes();
                match step {
                    0 => prop_assert_eq!(lazy.intern(kind, name), twin.intern(kind, name)),
                    1 => prop_assert_eq!(lazy.define(kind, *id, name), twin.define(kind, *id, name)),
                    2 => prop_assert_eq!(
                        lazy.define_sparse(kind, *id, name, 20),
                        twin.define_sparse(kind, *id, name, 20)
                    ),
                    3 if *id > 0 => prop_assert_eq!(lazy.leave_out(kind, *id), twin.leave_out(kind, *id)),
                    4 => prop_assert_eq!(
                        lazy.intern_up_to(kind, name, *id),
                        twin.intern_up_to(kind, name, *id)
                    ),
                    5 => lazy = lazy.clone(),
                    6 if *id == 0 => {
                        lazy.clear();
                        twin.clear();
                    }
                    _ => {}
                }
                prop_assert_eq!(lazy.get(kind, name), twin.get(kind, name));
                let sought = |d: &Dictionary| Some(d.finish_lookup(&d.start_lookup(kind, name)?));
                prop_assert_eq!(sought(&lazy), sought(&twin));
                prop_assert_eq!((lazy.len(kind), lazy.is_empty()), (twin.len(kind), twin.is_empty()));
                for id in 0..=lazy.len(kind) + 1 {
                    prop_assert_eq!(lazy.name(kind, id), twin.name(kind, id));
                }
                let taken = |d: &mut Dictionary| {
                    let mut text = Vec::new();
                    d.take_back(kind, *id, 0, &mut text).map(|()| text)
                };
                prop_assert_eq!(taken(&mut lazy), taken(&mut twin));
            }
            prop_assert!(source.1.load(Ordering::Relaxed) as usize <= source.0.len(), "a name is opened twice");
        }
    }
}
