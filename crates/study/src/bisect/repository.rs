//! A git repository whose commits are built in a working tree of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::{output_of, tool};
use numalab_record::bisect::Commit;

use super::error::BisectError;

/// How long git may take; a checkout of a kernel takes minutes on a slow disk.
const GIT_LIMIT: Duration = Duration::from_secs(1800);

/// A repository, and a working tree beside the user's own, which is left alone.
#[derive(Debug)]
pub struct Repository {
    tree: PathBuf,
    worktree: PathBuf,
}

impl Repository {
    /// The repository of a working tree.
    ///
    /// # Errors
    /// [`BisectError::Git`] if there is none.
    pub fn open(tree: &Path, worktree: PathBuf) -> Result<Self, BisectError> {
        let repository = Self { tree: tree.to_path_buf(), worktree };
        repository.git(&["rev-parse", "--git-dir"])?;
        Ok(repository)
    }

    /// Where commits are checked out.
    #[must_use]
    pub fn worktree(&self) -> &Path {
        &self.worktree
    }

    /// The commit that a revision names.
    ///
    /// # Errors
    /// [`BisectError::Git`] if it names none.
    pub fn commit(&self, revision: &str) -> Result<Commit, BisectError> {
        let shown = self.git(&[
            "log",
            "-1",
            "--format=%H%n%an <%ae>%n%s",
            "--end-of-options",
            &format!("{revision}^{{commit}}"),
            "--",
        ])?;
        let mut lines = shown.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        let (hash, author, subject) = (next(), next(), next());
        Ok(Commit { hash, subject, author })
    }

    /// How many commits lie behind `good` up to `bad`, which is one of them.
    ///
    /// # Errors
    /// [`BisectError::NotBehind`] if `bad` does not come after `good`.
    pub fn count(&self, good: &Commit, bad: &Commit) -> Result<usize, BisectError> {
        let base = self.git(&["merge-base", &good.hash, &bad.hash]).unwrap_or_default();
        if base.trim() != good.hash || good.hash == bad.hash {
            let (good, bad) = (good.short().to_owned(), bad.short().to_owned());
            return Err(BisectError::NotBehind { good, bad });
        }
        let range = format!("{}..{}", good.hash, bad.hash);
        let count = self.git(&["rev-list", "--count", &range])?;
        Ok(count.trim().parse().unwrap_or_default())
    }

    /// The commits that could be the first bad one: `bad`, and what it has and none of `goods`
    /// has; first those that halve them best.
    ///
    /// # Errors
    /// [`BisectError::Git`].
    pub fn candidates(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, BisectError> {
        let mut words = vec!["rev-list", "--bisect-all", bad, "--not"];
        words.extend(goods.iter().map(String::as_str));
        let listed = self.git(&words)?;
        let hash = |line: &str| line.split(' ').next().map(str::to_owned);
        Ok(listed.lines().filter_map(hash).collect())
    }

    /// Puts a commit into the working tree; files that did not change keep their times.
    ///
    /// # Errors
    /// [`BisectError::Git`].
    pub fn check_out(&self, commit: &Commit) -> Result<(), BisectError> {
        if self.worktree.exists() {
            let arguments = ["checkout", "--quiet", "--force", "--detach", &commit.hash];
            return git(&self.worktree, &arguments).map(drop);
        }
        let place = self.worktree.to_string_lossy();
        self.git(&["worktree", "add", "--quiet", "--detach", &place, &commit.hash]).map(drop)
    }

    fn git(&self, arguments: &[&str]) -> Result<String, BisectError> {
        git(&self.tree, arguments)
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        if self.worktree.exists() {
            let place = self.worktree.to_string_lossy();
            // What remains is a directory that `git worktree prune` forgets.
            let _ = self.git(&["worktree", "remove", "--force", &place]);
        }
    }
}

fn git(directory: &Path, arguments: &[&str]) -> Result<String, BisectError> {
    let mut command = tool("git", arguments);
    command.current_dir(directory);
    output_of(command, GIT_LIMIT)
        .map_err(|source| BisectError::Git { tree: directory.to_path_buf(), source })
}

#[cfg(test)]
mod tests;
