//! Sizes as typed by users: `512M`, `1G`, `16K-1G`.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

/// Reasons why a string is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The text is not a number with a unit.
    #[error("`{text}` is not a size: expected a number and K, M, G or T, such as 512M or 1.5G")]
    Form { text: String },
    /// A number without a unit where a unit is required.
    #[error("`{text}` has no unit: expected a size such as 512M, 1.5G or 4096B")]
    Unit { text: String },
    /// More than 64 bits of bytes.
    #[error("`{text}` exceeds 64 bits")]
    TooLarge { text: String },
    /// A range from a larger to a smaller size, or from zero.
    #[error(
        "`{text}` is not a range of sizes: expected the smaller first and above 0, such as 16K-1G"
    )]
    Range { text: String },
}

/// Maximum number of decimals: further ones would change a TiB by less than a byte.
const MOST_DECIMALS: usize = 12;

/// The units, largest first.
const UNITS: [(char, u64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// Parses one size in bytes, as typed by users: a number, which may have decimals, then `K`, `M`,
/// `G` or `T` for powers of 1024, alone or as `KiB` or `KB`, in either case, or `B`. A number alone
/// is in MiB. A fraction of a byte is dropped.
///
/// # Errors
/// [`SizeError::Form`] and [`SizeError::TooLarge`], quoting the text.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    parse_with(text, Some(1 << 20))
}

/// Parses one size in bytes in a description of a machine: as [`parse_bytes`], but every number
/// except 0 needs a unit.
///
/// # Errors
/// [`SizeError::Unit`] without one, and as [`parse_bytes`].
pub fn parse_with_unit(text: &str) -> Result<u64, SizeError> {
    parse_with(text, None)
}

/// Parses one size in bytes, as reported by a tool: a number alone is in bytes.
pub(crate) fn parse_reported(text: &str) -> Option<u64> {
    parse_with(text, Some(1)).ok()
}

/// Parses a list of sizes in bytes such as `8`, `1-16384`, `16K-1G` or `1,2,64M`. A number alone is
/// in MiB. A range means its first size, doubled up to the last, and the last. Duplicates count
/// once.
///
/// # Errors
/// Every variant of [`SizeError`], quoting the item.
pub fn parse_list(text: &str) -> Result<Vec<u64>, SizeError> {
    let mut sizes = Vec::new();
    for item in text.split(',').map(str::trim) {
        match item.split_once('-') {
            None => sizes.push(parse_bytes(item)?),
            Some((first, last)) => {
                let first = parse_bytes(first)?;
                let last = parse_bytes(last)?;
                if first == 0 || first > last {
                    let text = item.to_owned();
                    return Err(SizeError::Range { text });
                }
                let doubled = std::iter::successors(Some(first), |size| size.checked_mul(2));
                sizes.extend(doubled.take_while(|&size| size < last));
                sizes.push(last);
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    sizes.retain(|size| seen.insert(*size));
    Ok(sizes)
}

/// Writes a size in the largest unit that divides it, so that all readers get the same size.
pub fn format_bytes(bytes: u64) -> String {
    let fits = |(_, unit): &&(char, u64)| bytes > 0 && bytes.is_multiple_of(*unit);
    match UNITS.iter().find(fits) {
        Some((letter, unit)) => format!("{}{letter}", bytes / unit),
        None if bytes > 0 => format!("{bytes}B"),
        None => "0".to_owned(),
    }
}

/// Writes a size for people, rounded: `62.7 GiB`.
pub fn format_rounded(bytes: u64) -> String {
    let Some((letter, unit)) = UNITS.iter().find(|(_, unit)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    let tenths = tenths(bytes, *unit);
    match tenths % 10 {
        0 => format!("{} {letter}iB", tenths / 10),
        tenth => format!("{}.{tenth} {letter}iB", tenths / 10),
    }
}

/// Returns the size that [`format_rounded`] writes.
pub(crate) fn rounded(bytes: u64) -> u64 {
    let Some((_, unit)) = UNITS.iter().find(|(_, unit)| bytes >= *unit) else {
        return bytes;
    };
    // Rounded up, so that the result is written as the same text.
    let size = (tenths(bytes, *unit) * u128::from(*unit)).div_ceil(10);
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// Converts a size to tenths of a unit, rounded.
fn tenths(bytes: u64, unit: u64) -> u128 {
    (u128::from(bytes) * 10 + u128::from(unit / 2)) / u128::from(unit)
}

fn parse_with(text: &str, alone: Option<u64>) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let malformed = || SizeError::Form { text: text.to_owned() };
    let too_large = || SizeError::TooLarge { text: text.to_owned() };
    let end = trimmed.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
    let unit = unit.trim_start().to_ascii_uppercase();
    let bytes_per_unit = match unit.as_str() {
        "" => match alone {
            Some(unit) => unit,
            None if number.bytes().all(|digit| digit == b'0') => 1,
            None => return Err(SizeError::Unit { text: text.to_owned() }),
        },
        "B" => 1,
        unit => {
            let letter = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(unit);
            let known =
                UNITS.iter().find(|(name, _)| letter.len() == 1 && letter.starts_with(*name));
            known.ok_or_else(malformed)?.1
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let fits = bytes_per_unit > 1 || !number.contains('.');
    if !digits(whole) || !digits(fraction) || fraction.len() > MOST_DECIMALS || !fits {
        return Err(malformed());
    }
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let bytes = whole.checked_mul(bytes_per_unit).ok_or_else(too_large)?;
    let part: u128 = fraction.parse().map_err(|_| malformed())?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or_default());
    let part = u64::try_from(part * u128::from(bytes_per_unit) / scale).map_err(|_| too_large())?;
    bytes.checked_add(part).ok_or_else(too_large)
}
