//! Masks of cpus and nodes.

use numalab_topology::{Id, IdSet, MAX_ID};

use super::field;

/// Returns the cpus or nodes that a process may use (`what` is `Cpus` or `Mems`), from its
/// `/proc/PID/status`: the list, or the mask if the list is left out, as before Linux 2.6.26 and in
/// shortened copies.
pub fn allowed<I: Id>(status: &str, what: &str) -> Option<IdSet<I>> {
    let list = field(status, &format!("{what}_allowed_list")).and_then(|list| list.parse().ok());
    list.or_else(|| mask(field(status, &format!("{what}_allowed"))?))
}

/// Parses a mask of 32-bit words, most significant first, separated by commas.
pub(crate) fn mask<I: Id>(text: &str) -> Option<IdSet<I>> {
    let mut ids = IdSet::new();
    let mut first_bit = 0;
    for word in text.rsplit(',') {
        if word.len() > 8 && text.contains(',') {
            return None;
        }
        for digit in word.bytes().rev() {
            let digit = char::from(digit).to_digit(16)?;
            for bit in (0..4).filter(|bit| digit & (1 << bit) != 0) {
                let number = first_bit + bit;
                if number > MAX_ID {
                    return None;
                }
                ids.insert(I::from_number(number));
            }
            first_bit += 4;
        }
        // Words are 32 bits wide even where leading zeros are omitted.
        first_bit = first_bit.next_multiple_of(32);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use numalab_topology::{CpuId, CpuSet, NodeSet};

    use super::*;

    fn read(text: &str) -> Option<CpuSet> {
        mask::<CpuId>(text)
    }

    #[test]
    fn a_mask_of_several_words_is_read_from_its_end() {
        let cpus = read("00000001,80000003").unwrap();
        assert_eq!(cpus.to_string(), "0,1,31,32");
    }

    #[test]
    fn a_mask_with_a_short_last_word_is_read() {
        assert_eq!(read("0,ff").unwrap().to_string(), "0-7");
        assert_eq!(read("0").unwrap().len(), 0);
    }

    #[test]
    fn text_that_is_not_a_mask_is_refused() {
        assert_eq!(read("0x3"), None);
        assert_eq!(read("3 4"), None);
        assert_eq!(read("000000001,00000000"), None);
    }

    #[test]
    fn a_mask_of_megabytes_is_refused() {
        let text = "f".repeat(1 << 20);
        assert_eq!(read(&text), None);
    }
    #[test]
    fn the_mask_of_a_status_is_read_where_the_list_is_left_out() {
        let status = "Cpus_allowed:\tff,00000000\nMems_allowed:\t00000000,0000000d\n";
        let cpus: Option<CpuSet> = allowed(status, "Cpus");
        assert_eq!(cpus.unwrap().to_string(), "32-39");
        let nodes: Option<NodeSet> = allowed(status, "Mems");
        assert_eq!(nodes.unwrap().to_string(), "0,2,3");
        let both = format!("{status}Mems_allowed_list:\t1\n");
        let nodes: Option<NodeSet> = allowed(&both, "Mems");
        assert_eq!(nodes.unwrap().to_string(), "1");
        assert_eq!(allowed::<CpuId>("Cpus_allowed:\tx\n", "Cpus"), None);
        assert_eq!(allowed::<CpuId>("", "Cpus"), None);
    }
}
