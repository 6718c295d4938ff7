//! Arguments as given, taken one by one.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ArgumentError;

/// Arguments that have not been taken yet.
pub(super) struct Given(Vec<(String, String)>);

impl Given {
    pub(super) fn new<'a>(given: impl IntoIterator<Item = &'a str>) -> Result<Self, ArgumentError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for word in given {
            let unknown = || ArgumentError::Unknown(word.to_owned());
            let (key, value) = word.split_once('=').ok_or_else(unknown)?;
            if pairs.iter().any(|pair| pair.0 == key) {
                return Err(ArgumentError::Twice(key.to_owned()));
            }
            pairs.push((key.to_owned(), value.to_owned()));
        }
        Ok(Self(pairs))
    }

    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|pair| pair.0 == key)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(super) fn choice<T>(
        &mut self,
        key: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ArgumentError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let read = read(&value);
        read.map(Some).ok_or(ArgumentError::Value { key, value, expected })
    }

    pub(super) fn nothing_left(&mut self) -> Result<(), ArgumentError> {
        self.0
            .pop()
            .map_or(Ok(()), |(key, value)| Err(ArgumentError::Unknown(format!("{key}={value}"))))
    }
}
