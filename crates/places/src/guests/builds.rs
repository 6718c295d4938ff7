//! Hypervisors supplied by the user, checked before anything is booted.

use numalab_record::Fact;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use numalab_guest::xen::{XenBuild, XenBuildError};
use numalab_study::{BackendError, StudyPlace};

use super::errors::bad;
use super::kind::XEN;
use super::settings::{GuestTreatment, GuestsSettings, HypervisorKind};

/// Returns the hypervisors that the treatments name, by file.
pub(super) fn hypervisor_builds(
    wanted: &[GuestTreatment],
    settings: &GuestsSettings,
) -> Result<BTreeMap<PathBuf, XenBuild>, BackendError> {
    let mut builds = BTreeMap::new();
    for file in wanted.iter().filter_map(|wanted| wanted.xen.as_ref()) {
        check_place(settings)?;
        if !builds.contains_key(file) {
            let build = XenBuild::check(file).map_err(|error| refused(file, &error))?;
            builds.insert(file.clone(), build);
        }
    }
    Ok(builds)
}

/// Returns the hypervisor that a treatment boots, if it is not Debian's.
pub(super) fn build_of(
    wanted: &GuestTreatment,
    builds: &BTreeMap<PathBuf, XenBuild>,
) -> Result<Option<XenBuild>, BackendError> {
    let Some(file) = &wanted.xen else { return Ok(None) };
    match builds.get(file) {
        Some(build) => Ok(Some(build.clone())),
        None => XenBuild::check(file).map(Some).map_err(|error| refused(file, &error)),
    }
}

/// Returns each hypervisor's name and fingerprint, as facts about the study's system.
pub(super) fn facts(
    builds: &BTreeMap<PathBuf, XenBuild>,
) -> impl Iterator<Item = (String, Fact)> + '_ {
    builds.iter().map(|(file, build)| {
        (format!("{XEN} {}", file.display()), format!("sha256 {}", build.sha256()).into())
    })
}

/// Checks that the guests run on a Xen in QEMU, the only one that can be chosen.
fn check_place(settings: &GuestsSettings) -> Result<(), BackendError> {
    let place = StudyPlace::Setting(XEN.to_owned());
    if settings.hypervisor == HypervisorKind::Qemu {
        return Err(bad(place, "QEMU guests do not run on Xen".to_owned(), "hypervisor = \"xen\""));
    }
    if settings.on_this_dom0 {
        let found = "this machine already runs Xen".to_owned();
        return Err(bad(place, found, "a Xen in QEMU, without on-this-dom0"));
    }
    Ok(())
}

fn refused(file: &Path, error: &XenBuildError) -> BackendError {
    let error = error.to_string();
    let reason = error.strip_prefix(&format!("{}: ", file.display())).unwrap_or(&error);
    let expected = "debian, or the xen or xen.gz from a build of Xen";
    bad(
        StudyPlace::Setting(XEN.to_owned()),
        format!("{:?}: {reason}", file.display().to_string()),
        expected,
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use numalab_guest::HostPages;
    use numalab_guest::xen::Pinning;

    use super::super::machine;
    use super::*;

    fn wanted(xen: &[&Path]) -> Vec<GuestTreatment> {
        let of = |file: &&Path| GuestTreatment {
            numa: "on".to_owned(),
            guests: 1,
            pinning: Pinning::None,
            dom0_nodes: None,
            pools: false,
            machine: machine::read("x460").unwrap(),
            xen: Some(file.to_path_buf()),
            pages: HostPages::Normal,
        };
        xen.iter().map(of).collect()
    }

    /// Writes the parts of a hypervisor that are checked: ELF, a multiboot header, its banner.
    fn write_xen(file: &Path, end: &str) {
        let mut program = vec![0; 64];
        program[..5].copy_from_slice(b"\x7fELF\x01");
        program[18] = 3;
        for (at, field) in [(32, 0x1bad_b002_u32), (36, 0), (40, 0xe452_4ffe)] {
            program[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        program.extend_from_slice(b"Xen version %d.%d%s\n");
        program.extend_from_slice(end.as_bytes());
        fs::write(file, program).unwrap();
    }

    #[test]
    fn a_hypervisor_that_was_built_anew_is_another_fact() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("xen");
        let settings = GuestsSettings::default();
        let fact = |end: &str| {
            write_xen(&file, end);
            let builds = hypervisor_builds(&wanted(&[&file, &file]), &settings).unwrap();
            facts(&builds).collect::<Vec<_>>()
        };
        let before = fact("a");
        assert_eq!(before.len(), 1);
        assert_eq!(before[0].0, format!("xen {}", file.display()));
        assert!(before[0].1.to_string().starts_with("sha256 "));
        assert_eq!(fact("a"), before);
        let wanted = wanted(&[&file]);
        let builds = hypervisor_builds(&wanted, &settings).unwrap();
        assert_eq!(build_of(&wanted[0], &builds).unwrap().as_ref(), builds.get(&file));
        assert_ne!(fact("b"), before);
    }

    #[test]
    fn a_hypervisor_is_refused_where_none_boots_before_its_file_is_read() {
        let nothing = wanted(&[Path::new("/no/such/xen")]);
        let refused = |settings: GuestsSettings| {
            hypervisor_builds(&nothing, &settings).unwrap_err().to_string()
        };
        let qemu = GuestsSettings { hypervisor: HypervisorKind::Qemu, ..Default::default() };
        assert!(refused(qemu).contains("setting xen: QEMU guests do not run on Xen"));
        let here = GuestsSettings { on_this_dom0: true, ..GuestsSettings::default() };
        assert!(refused(here).contains("without on-this-dom0"));
        let error = refused(GuestsSettings::default());
        assert!(error.starts_with("setting xen: \"/no/such/xen\": No such file"), "{error}");
        assert!(error.contains("expected debian, or the xen or xen.gz"), "{error}");
    }
}
