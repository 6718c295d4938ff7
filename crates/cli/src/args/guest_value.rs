//! Values of guest commands on the command line.

use std::path::PathBuf;

use numalab_guest::PinPlan;
use numalab_image::{Architecture, KernelChoice};
use numalab_topology::{CpuSet, NodeSet};

use super::value;

/// A set for each guest node; clap would take a `Vec` for several values.
pub(crate) type NodeSets = Vec<NodeSet>;

/// Reads node sets separated by `;`.
pub(crate) fn node_sets(text: &str) -> Result<NodeSets, String> {
    let sets = text.split(';').map(value::host_nodes).collect::<Result<_, _>>();
    sets.map_err(|error| format!("`{text}`: {error}"))
}

/// Reads an architecture by the kernel's or Debian's name.
pub(crate) fn architecture(text: &str) -> Result<Architecture, String> {
    Architecture::of_name(text).ok_or_else(|| {
        let known = Architecture::NAMES.join(" or ");
        format!("`{text}` is not a guest architecture: expected {known}")
    })
}

/// The kernel a guest boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BootKernel {
    /// A Linux kernel.
    Linux(KernelChoice),
    /// numalab's own kernel.
    Numalab,
}

/// Reads `linux`, `backports`, `numalab`, or the name of a file.
pub(crate) fn kernel(text: &str) -> Result<BootKernel, String> {
    let file = PathBuf::from(text);
    match text {
        "linux" => Ok(BootKernel::Linux(KernelChoice::Distribution)),
        "backports" => Ok(BootKernel::Linux(KernelChoice::Backports)),
        "numalab" => Ok(BootKernel::Numalab),
        _ if file.is_file() => Ok(BootKernel::Linux(KernelChoice::File(file))),
        _ => Err(format!(
            "`{text}` is not a kernel: expected linux, backports, numalab or an existing file"
        )),
    }
}

/// Reads `auto`, `0=4;1=5-6`, or the host cpus of each node: `0-3;4-7`.
pub(crate) fn pins(text: &str) -> Result<PinPlan, String> {
    if text == "auto" {
        return Ok(PinPlan::Automatic);
    }
    if !text.contains('=') {
        let lists = text.split(';').map(value::host_cpus).collect::<Result<_, _>>()?;
        return Ok(PinPlan::NodeLists { vcpus: None, lists });
    }
    text.split(';').map(pinned).collect::<Result<_, _>>().map(PinPlan::Map)
}

fn pinned(item: &str) -> Result<(u32, CpuSet), String> {
    let malformed =
        || format!("`{item}`: expected a guest cpu and host cpus, such as 0=4 or 1=5-6");
    let (vcpu, list) = item.split_once('=').ok_or_else(malformed)?;
    Ok((vcpu.trim().parse().map_err(|_| malformed())?, value::host_cpus(list)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().expect(text)
    }

    #[test]
    fn pins_are_automatic_a_map_or_lists_of_nodes() {
        assert_eq!(pins("auto"), Ok(PinPlan::Automatic));
        let map = PinPlan::Map(vec![(0, set("4")), (3, set("5-6,9"))]);
        assert_eq!(pins("0=4; 3=5-6,9"), Ok(map));
        let lists = vec![set("0-3"), set("16-19")];
        assert_eq!(pins("0-3;16-19"), Ok(PinPlan::NodeLists { vcpus: None, lists }));
    }

    #[test]
    fn nonsense_is_quoted_with_the_expected_form() {
        for text in ["", "0=", "x=3", "0=1;2", "0-3;", "a;b"] {
            let error = pins(text).expect_err(text);
            assert!(error.contains("expected"), "{text}: {error}");
        }
        assert!(kernel("/no/such").expect_err("no such").contains("/no/such"));
        assert!(node_sets("0;").expect_err("empty").contains("expected"));
        assert!(node_sets("x").expect_err("no set").contains("expected"));
    }

    #[test]
    fn host_nodes_are_given_for_each_guest_node() {
        let sets = node_sets("0;1,3").expect("two sets");
        let expected = ["0", "1,3"].map(|text| text.parse().expect(text));
        assert_eq!(sets, expected);
    }
}
