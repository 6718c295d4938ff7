use super::*;

#[test]
fn an_image_truncated_or_changed_in_the_cache_is_rewritten() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path().join("cache")).unwrap();
    let keep = || Image::keep(&cache, b"an archive", Path::new("/kernel"), &mut |_| {}).unwrap();
    let first = keep();
    let file = first.boot_files().initramfs.clone().unwrap();
    assert!(!first.cached && keep().cached);
    for damage in ["", "an arch", "AN archive"] {
        fs::write(&file, damage).unwrap();
        assert!(!keep().cached, "{damage:?}");
        assert_eq!(fs::read(&file).unwrap(), b"an archive");
        assert!(keep().cached);
    }
}
