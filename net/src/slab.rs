//! A table by plain index for handles of the host: the layer above owns each one and closes it once, so a generation would guard nothing.

/// At most as many `T` as were said at start.
///
/// When full: [`Slab::insert`] gives the value back.
/// Cost: O(1); the memory is reserved at start and touched as places are first used.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
    capacity: usize,
}

impl<T> Slab<T> {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            entries: Vec::with_capacity(capacity as usize),
            free: Vec::with_capacity(capacity as usize),
            capacity: capacity as usize,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Result<u32, T> {
        let Some(index) = self.free.pop() else {
            if self.is_full() {
                return Err(value);
            }
            self.entries.push(Some(value));
            return Ok(self.entries.len() as u32 - 1);
        };
        if let Some(entry) = self.entries.get_mut(index as usize) {
            *entry = Some(value);
        }
        Ok(index)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(value)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty() && self.entries.len() == self.capacity
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_map(capacity in 0_u32..6, steps in prop::collection::vec((any::<bool>(), 0_u32..7), 0..200)) {
            let mut slab = Slab::new(capacity);
            let mut model = BTreeMap::new();
            for (number, (insert, index)) in steps.into_iter().enumerate() {
                if insert {
                    match slab.insert(number) {
                        Ok(index) => prop_assert!(index < capacity && model.insert(index, number).is_none()),
                        Err(back) => prop_assert_eq!((back, model.len()), (number, capacity as usize)),
                    }
                } else {
                    prop_assert_eq!(slab.remove(index), model.remove(&index));
                }
                prop_assert_eq!(slab.len(), model.len());
                prop_assert_eq!(slab.is_full(), model.len() == capacity as usize);
                for index in 0..7 {
                    prop_assert_eq!(slab.get(index), model.get(&index));
                    prop_assert_eq!(slab.get_mut(index), model.get_mut(&index));
                }
            }
        }
    }
}
