//! Interns call chains.

use std::collections::HashMap;

use numalab_record::CodePlace;

use crate::space::Space;

/// Call chains that were seen, by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codes {
    by_addresses: HashMap<Vec<u64>, usize>,
    places: Vec<Vec<(usize, u64)>>,
}

impl Codes {
    /// Returns the index of a call chain, innermost first. Its addresses are resolved when it is
    /// first seen, since mappings can change.
    pub(crate) fn index_of(&mut self, calls: &[u64], space: &Space) -> usize {
        if let Some(known) = self.by_addresses.get(calls) {
            return *known;
        }
        let place = |(depth, address): (usize, &u64)| {
            // The return address is that of the instruction after the call.
            let address = if depth == 0 { *address } else { address.saturating_sub(1) };
            space.at(address).map(|place| (place.region, place.offset))
        };
        self.places.push(calls.iter().enumerate().map_while(place).collect());
        self.by_addresses.insert(calls.to_vec(), self.places.len() - 1);
        self.places.len() - 1
    }

    /// Returns a call chain as places in files.
    pub(crate) fn places(&self, code: usize, space: &Space) -> Vec<CodePlace> {
        let place = |(region, offset): &(usize, u64)| CodePlace {
            object: space.regions()[*region].name.clone(),
            offset: *offset,
            function: None,
            line: None,
        };
        self.places.get(code).into_iter().flatten().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use numalab_host::perf::MapRecord;

    use super::*;

    #[test]
    fn call_chains_are_interned_and_end_at_unknown_code() {
        let mut space = Space::default();
        let (start, end, offset) = (0x1000, 0x3000, 0x400);
        let name = "/bin/a".to_owned();
        space.take(&MapRecord { time_ns: 0, process: 1, start, end, offset, name });
        let mut codes = Codes::default();
        let first = codes.index_of(&[0x1010, 0x2000, 0x9000, 0x1020], &space);
        assert_eq!(codes.index_of(&[0x1010, 0x2000, 0x9000, 0x1020], &space), first);
        assert_ne!(codes.index_of(&[0x1010], &space), first);
        let places = codes.places(first, &space);
        let offsets: Vec<u64> = places.iter().map(|place| place.offset).collect();
        assert_eq!(offsets, [0x410, 0x13ff], "the call is before where it returns to");
        assert_eq!(places[0].object, "/bin/a");
    }
}
