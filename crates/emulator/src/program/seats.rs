//! Values by seat, at stable addresses.

use std::cell::UnsafeCell;
use std::ops::{Index, IndexMut};

/// Values by seat. A value's address stays valid whatever references are made in between, because
/// all are made from the same cell.
#[derive(Debug)]
pub struct Seats<T>(Vec<Box<UnsafeCell<T>>>);

impl<T> Default for Seats<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Seats<T> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a value in the next seat.
    pub fn push(&mut self, value: T) {
        self.0.push(Box::new(UnsafeCell::new(value)));
    }

    /// Returns the address of a seat's value. It may be used while there is no reference to the
    /// seats.
    pub fn place(&self, seat: usize) -> *mut T {
        self.0[seat].get()
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        // SAFETY: `&self` excludes references for writing, and uses of an address of `place`.
        self.0.iter().map(|value| unsafe { &*value.get() })
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        // SAFETY: `&mut self` excludes all other references, and uses of an address of `place`; each
        // cell comes once. Not `get_mut`, after which no earlier address may be used.
        self.0.iter().map(|value| unsafe { &mut *value.get() })
    }
}

impl<T> Index<usize> for Seats<T> {
    type Output = T;

    #[inline]
    fn index(&self, seat: usize) -> &T {
        // SAFETY: as in `iter`.
        unsafe { &*self.place(seat) }
    }
}

impl<T> IndexMut<usize> for Seats<T> {
    #[inline]
    fn index_mut(&mut self, seat: usize) -> &mut T {
        // SAFETY: as in `iter_mut`.
        unsafe { &mut *self.place(seat) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Miri refuses the last access if any of those before was not made from the cell.
    #[test]
    fn an_address_stays_valid_while_other_references_come_and_go() {
        let mut seats = Seats::default();
        seats.push(1);
        let place = seats.place(0);
        seats.push(10);
        seats[0] += 1;
        seats.iter_mut().for_each(|value| *value += 1);
        assert_eq!(seats.iter().sum::<i32>(), 14);
        // SAFETY: there is no reference to the seats.
        unsafe { *place += 1 };
        assert_eq!((seats[0], seats.len()), (4, 2));
    }
}
