//! A git repository for tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::repository::Repository;

/// A repository with commits 0 to `commits` - 1, each of which writes its number to a file.
pub(super) struct Lab {
    pub(super) directory: TempDir,
    pub(super) hashes: Vec<String>,
}

impl Lab {
    pub(super) fn new(commits: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Self { directory, hashes: Vec::new() };
        lab.git(&["init", "--quiet"]);
        for number in 0..commits {
            lab.commit(number);
        }
        lab
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    fn commit(&mut self, number: usize) {
        fs::write(self.tree().join("number"), number.to_string()).unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", &format!("change {number}")]);
        let hash = self.git(&["rev-parse", "HEAD"]).trim().to_owned();
        self.hashes.push(hash);
    }

    /// Runs git without the user's configuration.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        fs::create_dir_all(self.tree()).unwrap();
        let ran = Command::new("git")
            .args(["-c", "user.name=A U Thor", "-c", "user.email=a@example.org"])
            .args(["-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .current_dir(self.tree())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    pub(super) fn open(&self) -> Repository {
        Repository::open(&self.tree(), self.directory.path().join("worktree")).unwrap()
    }
}
