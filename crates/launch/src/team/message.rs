//! Encodes the messages of ranks with their numbers.

use super::TeamError;

/// Messages of some ranks, by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RankMessages(pub Vec<(usize, Vec<u8>)>);

impl RankMessages {
    /// Encodes rank and length as 64 bits each, then the bytes, for each rank.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (rank, message) in &self.0 {
            bytes.extend((*rank as u64).to_le_bytes());
            bytes.extend((message.len() as u64).to_le_bytes());
            bytes.extend(message);
        }
        bytes
    }

    pub fn decode(mut bytes: &[u8]) -> Result<Self, TeamError> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let rank = number(&mut bytes)?;
            let length = number(&mut bytes)?;
            let (message, rest) = bytes.split_at_checked(length).ok_or_else(damaged)?;
            all.push((rank, message.to_vec()));
            bytes = rest;
        }
        Ok(Self(all))
    }

    /// Returns the messages in order of rank; there must be exactly one of each.
    pub fn by_rank(self, size: usize) -> Result<Vec<Vec<u8>>, TeamError> {
        let mut slots: Vec<Option<Vec<u8>>> = vec![None; size];
        for (rank, message) in self.0 {
            *slots.get_mut(rank).ok_or_else(damaged)? = Some(message);
        }
        slots.into_iter().collect::<Option<_>>().ok_or_else(damaged)
    }
}

fn number(bytes: &mut &[u8]) -> Result<usize, TeamError> {
    let (first, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    *bytes = rest;
    usize::try_from(u64::from_le_bytes(*first)).map_err(|_| damaged())
}

fn damaged() -> TeamError {
    let reason = "a message is damaged, or two ranks have the same number".to_owned();
    TeamError::Place { place: "the other ranks' messages".to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_are_read_back_and_nothing_else_panics(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..5),
            cut in 0_usize..100,
        ) {
            let given = RankMessages(messages.iter().cloned().enumerate().collect());
            let bytes = given.encode();
            let read = RankMessages::decode(&bytes).unwrap().by_rank(messages.len()).unwrap();
            prop_assert_eq!(read, messages);
            let _ = RankMessages::decode(&bytes[..cut.min(bytes.len())]);
        }
    }
}
