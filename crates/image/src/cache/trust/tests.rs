use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;
use crate::cache::{Cache, EntryKind};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Returns a cache with a kernel of two files.
fn cache(directory: &Path) -> (Cache, PathBuf) {
    let cache = Cache::at(directory.join("cache")).unwrap();
    let fill = |entry: &Path| {
        fs::create_dir(entry.join("sub")).unwrap();
        fs::write(entry.join("vmlinuz"), vec![7; 5000]).unwrap();
        fs::write(entry.join("sub/module"), "module").unwrap();
        symlink("vmlinuz", entry.join("link")).unwrap();
        Ok::<_, CacheError>(())
    };
    let entry = cache.make(EntryKind::Kernel, "k_1", fill).unwrap();
    (cache, entry)
}

#[test]
fn a_file_that_changed_after_it_was_put_into_the_cache_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, entry) = cache(directory.path());
    let first = || altered(&entry, &|_| true);
    assert_eq!(first(), None);
    assert!(cache.holds(EntryKind::Kernel, "k_1") && !cache.holds(EntryKind::Kernel, "k_2"));
    let file = entry.join("vmlinuz");
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[4000] ^= 1;
    for content in [&whole[..4096], &[], &flipped] {
        fs::write(&file, content).unwrap();
        assert_eq!(first(), Some(file.clone()));
        assert_eq!(altered(&entry, &|path| path != Path::new("vmlinuz")), None);
        assert!(!cache.holds(EntryKind::Kernel, "k_1"));
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(first(), Some(file.clone()));
    let copy = directory.path().join("copy");
    fs::write(&copy, &whole).unwrap();
    symlink(&copy, &file).unwrap();
    assert_eq!(first(), Some(file.clone()), "a link to the same content");
    fs::remove_file(&file).unwrap();
    fs::write(&file, &whole).unwrap();
    assert_eq!(first(), None);
    fs::write(entry.join(SEAL), "[{").unwrap();
    assert_eq!(first(), Some(entry.join(SEAL)));
}

#[test]
fn a_cache_that_others_may_write_to_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, _) = cache(directory.path());
    let root = cache.root().to_path_buf();
    for (place, mode) in [(root.clone(), 0o1777), (root.join("kernel"), 0o757)] {
        set_mode(&place, mode);
        let error = Cache::at(&root).unwrap_err();
        assert!(matches!(error, CacheError::Open { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("{}: mode {mode:o}", place.display())), "{said}");
        set_mode(&place, 0o755);
    }
    Cache::at(&root).unwrap();
}

#[test]
fn a_cache_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can make a directory of another user");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (cache, _) = cache(directory.path());
    let root = cache.root().to_path_buf();
    for place in [root.clone(), root.join("kernel")] {
        chown(&place, Some(65_534), None).unwrap();
        let said = Cache::at(&root).unwrap_err().to_string();
        assert!(said.contains("belongs to user 65534, expected 0 or root"), "{said}");
        chown(&place, Some(0), None).unwrap();
    }
    Cache::at(&root).unwrap();
}

#[test]
fn the_name_of_an_entry_cannot_lead_out_of_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let cache = Cache::at(directory.path().join("cache")).unwrap();
    for name in ["../../kept", "..", ".", "", "a/b", "/etc", "a\0b", "a/"] {
        let make = |_: &Path| Ok::<_, CacheError>(());
        let error = cache.make(EntryKind::Package, name, make).unwrap_err();
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        let error = cache.remove(EntryKind::Package, name).unwrap_err();
        assert!(matches!(error, CacheError::Name { .. }), "{error}");
        assert!(!cache.holds(EntryKind::Package, name));
    }
    assert!(kept.exists());
}
