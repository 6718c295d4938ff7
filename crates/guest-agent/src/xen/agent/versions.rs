//! Compatibility of the first domain's tools with its hypervisor: they only work with the
//! interfaces of their own release (`XEN_SYSCTL_INTERFACE_VERSION` and
//! `XEN_DOMCTL_INTERFACE_VERSION` in `xen/include/public`).

use std::fs;
use std::path::Path;

use super::AgentError;

/// The hypervisor's refusal of a caller with other interfaces (`-EACCES`), and libxc's message for
/// it.
const REFUSALS: [&str; 2] = ["Permission denied", "rebuild the user-space tool set"];

/// The releases of hypervisor and tools, such as `4.17`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Releases {
    hypervisor: String,
    tools: String,
}

/// Adds the reason to an error of the toolstack, if it is that hypervisor and tools are
/// incompatible.
pub(super) fn explained(error: AgentError) -> AgentError {
    explained_at(Path::new("/"), error)
}

/// Returns true if the tools report a refusal by the hypervisor.
pub(super) fn is_refusal(said: &str) -> bool {
    REFUSALS.iter().any(|words| said.contains(words))
}

fn explained_at(root: &Path, error: AgentError) -> AgentError {
    let Some(Releases { hypervisor, tools }) = releases(root) else { return error };
    if hypervisor == tools && !is_refusal(&error.to_string()) {
        return error;
    }
    AgentError::OtherInterfaces { source: Box::new(error), hypervisor, tools }
}

/// Returns the release of the hypervisor from Linux
/// (`Documentation/ABI/stable/sysfs-hypervisor-xen`), and that of the tools from their directory.
fn releases(root: &Path) -> Option<Releases> {
    let part = |name: &str| {
        let text = fs::read_to_string(root.join("sys/hypervisor/version").join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    let hypervisor = format!("{}.{}", part("major")?, part("minor")?);
    let entries = fs::read_dir(root.join("usr/lib")).ok()?.flatten();
    let mut with_tools = entries.filter(|entry| entry.path().join("bin/xl").is_file());
    let name = with_tools.find_map(|entry| entry.file_name().into_string().ok())?;
    Some(Releases { hypervisor, tools: name.strip_prefix("xen-")?.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Makes a first domain with a hypervisor of this minor version and tools of 4.17.
    fn root(minor: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let version = root.path().join("sys/hypervisor/version");
        let tools = root.path().join("usr/lib/xen-4.17/bin");
        for directory in [&version, &tools] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(version.join("major"), "4\n").unwrap();
        fs::write(version.join("minor"), format!("{minor}\n")).unwrap();
        fs::write(tools.join("xl"), "").unwrap();
        root
    }

    fn failed(reason: &str) -> AgentError {
        AgentError::Step { step: "xenstored".to_owned(), source: io::Error::other(reason) }
    }

    #[test]
    fn the_message_of_xl_for_a_domain_refused_by_another_release_is_recognised() {
        // Debian's xl of 4.17 on Xen 4.20.
        let said = "xl create -q -e g01.cfg: exit status: 3: libxl: error: libxl_create.c:711:\
                    libxl__domain_make: domain creation fail: Permission denied";
        assert!(is_refusal(said));
        assert!(!is_refusal("xl create -q -e g01.cfg: exit status: 3: not enough memory"));
    }

    #[test]
    fn an_error_with_a_hypervisor_of_another_release_gives_both() {
        let error = explained_at(root("20").path(), failed("exit status: 1")).to_string();
        assert!(error.starts_with("toolstack: xenstored: exit status: 1; "), "{error}");
        assert!(error.contains("is Xen 4.20") && error.contains("of Xen 4.17"), "{error}");
    }

    #[test]
    fn a_refusal_by_one_of_the_same_release_is_explained_and_other_errors_are_unchanged() {
        let root = root("17");
        let of = |reason: &str| explained_at(root.path(), failed(reason)).to_string();
        assert!(of("xl info: Permission denied").contains("same XEN_SYSCTL_INTERFACE_VERSION"));
        assert_eq!(of("exit status: 1"), "toolstack: xenstored: exit status: 1");
        let nowhere = tempfile::tempdir().unwrap();
        let error = explained_at(nowhere.path(), failed("Permission denied")).to_string();
        assert_eq!(error, "toolstack: xenstored: Permission denied");
    }
}
