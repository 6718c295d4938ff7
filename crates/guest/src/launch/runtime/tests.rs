use super::*;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn record() -> GuestRecord {
    GuestRecord {
        owner: std::process::id(),
        cpus: 8,
        nodes: 4,
        memory_bytes: 1 << 30,
        command: vec!["true".to_owned()],
    }
}

#[test]
fn a_running_guest_is_listed_and_its_directory_goes_with_it() {
    let root = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(root.path()).unwrap();
    let guest = runtime.begin(&record()).unwrap();
    let listed = Runtime::at(root.path()).unwrap().guests().unwrap();
    assert_eq!(listed.len(), 1, "another start leaves it alone");
    assert_eq!(listed[0].record, record());
    let path = guest.path().to_path_buf();
    drop(guest);
    assert!(!path.exists());
    assert_eq!(runtime.guests().unwrap(), []);
}

#[test]
fn only_remains_of_a_dead_owner_are_killed_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let dead = root.path().join("guest-1-2");
    fs::create_dir(&dead).unwrap();
    File::create(dead.join(LOCK)).unwrap();
    let sleeper = |argument: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "read line", argument]).stdin(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut ours = sleeper(&mark_of(&dead));
    let mut other = sleeper(&format!("{} x", mark_of(&dead)));
    let runtime = Runtime::at(root.path()).unwrap();
    assert!(!dead.exists());
    assert!(!ours.wait().unwrap().success(), "killed");
    assert!(other.try_wait().unwrap().is_none(), "alive");
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(runtime.guests().unwrap(), []);
}

#[test]
fn a_path_too_long_for_sockets_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let long = root.path().join("x".repeat(90));
    let runtime = Runtime::at(long).unwrap();
    assert!(matches!(runtime.begin(&record()), Err(RuntimeError::TooLong { .. })));
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn directories_of_guests_are_private_even_if_they_were_open() {
    let top = tempfile::tempdir().unwrap();
    for before in [None, Some(0o777), Some(0o755), Some(0o1777), Some(0o700)] {
        let root = top.path().join(format!("numalab-{before:?}"));
        if let Some(before) = before {
            fs::create_dir(&root).unwrap();
            set_mode(&root, before);
        }
        let guest = Runtime::at(&root).unwrap().begin(&record()).unwrap();
        assert_eq!((mode(&root), mode(guest.path())), (0o700, 0o700), "{before:?}");
    }
}

#[test]
fn another_user_cannot_connect_to_the_sockets_of_a_guest() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can try as another user whether a socket can be reached");
        return;
    }
    let top = tempfile::tempdir().unwrap();
    set_mode(top.path(), 0o755);
    let open = top.path().join("open");
    fs::create_dir(&open).unwrap();
    set_mode(&open, 0o777);
    let as_other = |path: &Path| {
        let mut test = Command::new("/usr/bin/test");
        test.arg("-S").arg(path).uid(65_534).gid(65_534);
        test.status().unwrap().success()
    };
    let control = open.join(CONTROL);
    let _listener = UnixListener::bind(&control).unwrap();
    assert!(as_other(&control), "what this test asks can be answered with yes");
    let guest = Runtime::at(&open).unwrap().begin(&record()).unwrap();
    let control = guest.path().join(CONTROL);
    let _listener = UnixListener::bind(&control).unwrap();
    assert!(UnixStream::connect(&control).is_ok());
    assert!(!as_other(&control));
}

#[test]
fn a_directory_of_another_user_and_a_link_are_refused() {
    let top = tempfile::tempdir().unwrap();
    let (elsewhere, link) = (top.path().join("elsewhere"), top.path().join("link"));
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &link).unwrap();
    assert!(matches!(Runtime::at(&link), Err(RuntimeError::Foreign { .. })));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&elsewhere, Some(65_534), None).unwrap();
        let said = Runtime::at(&elsewhere).unwrap_err().to_string();
        assert!(said.contains("belongs to user 65534, expected 0; set XDG_RUNTIME_DIR"), "{said}");
    } else {
        eprintln!("NOT RUN: only root can make a directory of another user");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn links_placed_in_an_open_directory_are_not_followed() {
    let top = tempfile::tempdir().unwrap();
    let (root, outside) = (top.path().join("root"), top.path().join("outside"));
    for directory in [&root, &outside] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(outside.join("kept"), "kept").unwrap();
    symlink(&outside, root.join("guest-1-2")).unwrap();
    Runtime::at(&root).unwrap();
    assert!(!root.join("guest-1-2").exists() && outside.join("kept").exists());
    fs::remove_file(root.join(LOCK)).unwrap();
    symlink(outside.join("made"), root.join(LOCK)).unwrap();
    assert!(matches!(Runtime::at(&root), Err(RuntimeError::Io { .. })));
    assert!(!outside.join("made").exists());
}

#[test]
fn two_guests_begun_at_the_same_moment_of_a_clock_that_was_set_back_have_a_directory_each() {
    let root = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(root.path()).unwrap();
    for moment in [Duration::ZERO, Duration::from_secs(1 << 31)] {
        let guests = [(); 3].map(|()| runtime.begin_at(&record(), moment).unwrap());
        assert_eq!(runtime.guests().unwrap().len(), guests.len());
    }
}
