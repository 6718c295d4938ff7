//! A git repository with a separate working tree for builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::{output_of, tool};
use numalab_record::bisect::Commit;

use super::error::BisectError;

/// Time limit of a git command; a checkout of a kernel takes minutes on a slow disk.
const GIT_LIMIT: Duration = Duration::from_secs(1800);

/// A repository, and a working tree separate from the user's, which is not touched.
#[derive(Debug)]
pub struct Repository {
    tree: PathBuf,
    worktree: PathBuf,
}

impl Repository {
    /// Opens the repository of a working tree.
    ///
    /// # Errors
    /// [`BisectError::Git`] if there is none.
    pub fn open(tree: &Path, worktree: PathBuf) -> Result<Self, BisectError> {
        // A command in a directory that does not exist fails as if the program did not.
        fs::metadata(tree)
            .map_err(|source| BisectError::NoFile { path: tree.to_owned(), source })?;
        let repository = Self { tree: tree.to_path_buf(), worktree };
        repository.git(&["rev-parse", "--git-dir"])?;
        Ok(repository)
    }

    /// Returns the directory into which commits are checked out.
    pub fn worktree(&self) -> &Path {
        &self.worktree
    }

    /// Resolves a revision to a commit.
    ///
    /// # Errors
    /// [`BisectError::Git`] if there is none.
    pub fn commit(&self, revision: &str) -> Result<Commit, BisectError> {
        let shown = self.git(&[
            "log",
            "-1",
            "--format=%H%n%an <%ae>%n%s",
            // A revision may begin with a dash.
            "--end-of-options",
            &format!("{revision}^{{commit}}"),
            "--",
        ])?;
        let mut lines = shown.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        let (hash, author, subject) = (next(), next(), next());
        Ok(Commit { hash, subject, author })
    }

    /// Returns the number of commits after `good` up to and including `bad`.
    ///
    /// # Errors
    /// [`BisectError::NotBehind`] if `bad` does not descend from `good`.
    pub fn count(&self, good: &Commit, bad: &Commit) -> Result<usize, BisectError> {
        // The search needs an order between the two; histories that only share an ancestor have
        // none.
        let base = self.git(&["merge-base", &good.hash, &bad.hash]).unwrap_or_default();
        if base.trim() != good.hash || good.hash == bad.hash {
            let (good, bad) = (good.short().to_owned(), bad.short().to_owned());
            return Err(BisectError::NotBehind { good, bad });
        }
        let range = format!("{}..{}", good.hash, bad.hash);
        let count = self.git(&["rev-list", "--count", &range])?;
        Ok(count.trim().parse().unwrap_or_default())
    }

    /// Returns the commits that may be the first bad one: ancestors of `bad`, including it, but not
    /// of any of `goods`; those that halve the rest best come first.
    pub fn candidates(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, BisectError> {
        // Git lists the commits by how well they halve the rest, which a history with merges makes
        // more than a middle position.
        let mut words = vec!["rev-list", "--bisect-all", bad, "--not"];
        words.extend(goods.iter().map(String::as_str));
        let listed = self.git(&words)?;
        let hash = |line: &str| line.split(' ').next().map(str::to_owned);
        Ok(listed.lines().filter_map(hash).collect())
    }

    /// Checks a commit out into the working tree; unchanged files keep their times, so that
    /// incremental builds work.
    pub fn check_out(&self, commit: &Commit) -> Result<(), BisectError> {
        if self.worktree.exists() {
            // A build may have changed files of the tree.
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
            // If this fails, a directory remains that `git worktree prune` removes from git's
            // records.
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
