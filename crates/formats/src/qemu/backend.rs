//! The backend of a node's memory on the host.

use std::fmt;

use numalab_topology::NodeSet;

/// The option `-object memory-backend-...`: a node's memory on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBackend {
    /// The guest's node.
    pub node: usize,
    /// Size in MiB.
    pub size_mib: u64,
    /// The pages behind it.
    pub pages: HostPages,
    /// The host nodes that the memory is bound to; if empty, the host decides.
    pub host_nodes: NodeSet,
    /// True if the whole memory is touched before the guest starts.
    pub prealloc: bool,
    /// True if the threads that touch the memory beforehand are kept on its host nodes.
    pub touched_there: bool,
    /// True if swap space is not reserved, so that guests larger than the host can start.
    pub unreserved: bool,
}

/// The pages behind guest memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPages {
    /// The system's usual pages, or transparent huge pages if the system provides them.
    #[default]
    Normal,
    /// Huge pages of this size from the system's pool (hugetlb).
    Huge {
        /// 2 MiB or 1 GiB.
        page_bytes: u64,
    },
    /// The system's usual pages in a file that can be shared with other processes (memfd).
    Shared,
}

impl MemoryBackend {
    /// Appends the options of the backend's objects.
    pub(super) fn add_to(&self, words: &mut Vec<String>) {
        if let Some(context) = self.thread_context() {
            add(words, "-object", context);
        }
        add(words, "-object", self.to_string());
    }

    /// Returns the object that keeps the threads which touch the memory beforehand on its host
    /// nodes.
    fn thread_context(&self) -> Option<String> {
        let list = host_list("node-affinity", &self.host_nodes);
        self.touched_there.then(|| format!("thread-context,id=touch{}{list}", self.node))
    }
}

impl fmt::Display for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.pages {
            HostPages::Normal => "ram",
            HostPages::Shared | HostPages::Huge { .. } => "memfd",
        };
        write!(f, "memory-backend-{kind},id=ram{},size={}M", self.node, self.size_mib)?;
        match self.pages {
            HostPages::Normal => {}
            HostPages::Shared => f.write_str(",share=on")?,
            HostPages::Huge { page_bytes } => {
                write!(f, ",hugetlb=on,hugetlbsize={page_bytes}")?;
            }
        }
        if !self.host_nodes.is_empty() {
            write!(f, "{},policy=bind", host_list("host-nodes", &self.host_nodes))?;
        }
        if self.prealloc {
            f.write_str(",prealloc=on")?;
        }
        if self.touched_there {
            write!(f, ",prealloc-context=touch{}", self.node)?;
        }
        if self.unreserved {
            f.write_str(",reserve=off")?;
        }
        Ok(())
    }
}

/// Returns the option for nodes, such as `,host-nodes=0-1,host-nodes=3`.
fn host_list(option: &str, nodes: &NodeSet) -> String {
    let list = nodes.to_string();
    list.split(',').map(|range| format!(",{option}={range}")).collect()
}

pub(super) fn add(words: &mut Vec<String>, option: &str, value: String) {
    words.extend([option.to_owned(), value]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_gives_the_source_of_its_pages_and_the_threads_that_touch_them() {
        let plain = MemoryBackend { node: 1, size_mib: 512, ..MemoryBackend::default() };
        assert_eq!(plain.to_string(), "memory-backend-ram,id=ram1,size=512M");
        assert_eq!(plain.thread_context(), None);
        let bound = MemoryBackend {
            pages: HostPages::Shared,
            host_nodes: "1,3".parse().unwrap(),
            prealloc: true,
            touched_there: true,
            unreserved: true,
            ..plain
        };
        assert_eq!(
            bound.to_string(),
            "memory-backend-memfd,id=ram1,size=512M,share=on,host-nodes=1,host-nodes=3,\
             policy=bind,prealloc=on,prealloc-context=touch1,reserve=off"
        );
        let context = bound.thread_context().unwrap();
        assert_eq!(context, "thread-context,id=touch1,node-affinity=1,node-affinity=3");
    }
}
