use std::time::Duration;

use super::*;

#[test]
fn an_entry_is_complete_or_absent() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path()).unwrap();
    let failed = cache.make(EntryKind::Image, "a", |work| {
        fs::write(work.join("half"), "x").unwrap();
        Err(CacheError::NoPlace)
    });
    assert!(failed.is_err());
    assert!(!cache.path(EntryKind::Image, "a").exists());
    assert_eq!(cache.entries().unwrap(), []);
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 0, "the working directory is gone");

    let write = |work: &Path| {
        fs::write(work.join("whole"), vec![0; 10_000]).unwrap();
        Ok::<_, CacheError>(())
    };
    let made = cache.make(EntryKind::Image, "a", write).unwrap();
    assert!(made.join("whole").exists());
    let entry = cache.entries().unwrap().remove(0);
    assert_eq!((entry.kind, entry.name.as_str()), (EntryKind::Image, "a"));
    assert!(entry.size_bytes >= 10_000);
    cache.clear().unwrap();
    assert_eq!(cache.entries().unwrap(), []);
}

#[test]
fn reading_a_cache_does_not_create_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("none");
    let cache = Cache::at(&root).unwrap();
    assert_eq!(cache.entries().unwrap(), []);
    assert_eq!(cache.size_bytes().unwrap(), 0);
    assert!(!root.exists());
}

#[test]
fn creating_an_entry_again_replaces_it() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path()).unwrap();
    for content in ["old", "new"] {
        let write = |work: &Path| {
            fs::write(work.join("file"), content).unwrap();
            Ok::<_, CacheError>(())
        };
        cache.make(EntryKind::Package, "p_1", write).unwrap();
    }
    let file = cache.path(EntryKind::Package, "p_1").join("file");
    assert_eq!(fs::read_to_string(file).unwrap(), "new");
}

#[test]
fn the_images_used_longest_ago_make_room() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path()).unwrap();
    for (age, name) in [(30, "oldest"), (20, "middle"), (10, "newest")] {
        let fill = |work: &Path| {
            let file = File::create(work.join("initramfs.cpio")).unwrap();
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 260 << 20)
                .unwrap();
            Ok::<_, CacheError>(())
        };
        let path = cache.make(EntryKind::Image, name, fill).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        File::open(path).unwrap().set_modified(time).unwrap();
    }
    cache.make_room(EntryKind::Image, 640 << 20, "newest").unwrap();
    let left: Vec<_> = cache.entries().unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(left, ["middle", "newest"]);
}
