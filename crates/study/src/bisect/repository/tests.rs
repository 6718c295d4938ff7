use std::fs;

use numalab_host::{Classed, ErrorClass};

use super::super::git_lab::Lab;
use super::*;

#[test]
fn a_revision_is_a_commit_with_its_author_and_subject() {
    let lab = Lab::new(2);
    let repository = lab.open();
    let commit = repository.commit("HEAD~1").unwrap();
    let expected = Commit {
        hash: lab.hashes[0].clone(),
        subject: "change 0".to_owned(),
        author: "A U Thor <a@example.org>".to_owned(),
    };
    assert_eq!(commit, expected);
    assert_eq!(repository.commit(&lab.hashes[1][..10]).unwrap().hash, lab.hashes[1]);
}

#[test]
fn an_unknown_revision_is_refused_with_the_tree_and_gits_error() {
    let lab = Lab::new(1);
    let repository = lab.open();
    for revision in ["nothing", "HEAD:number", "--all", ""] {
        let error = repository.commit(revision).unwrap_err();
        let BisectError::Git { tree, .. } = &error else { panic!("{revision}: {error}") };
        assert_eq!(*tree, lab.tree());
        assert!(error.to_string().starts_with(&format!("{}: ", lab.tree().display())), "{error}");
        assert_eq!(error.class(), ErrorClass::BadInput, "{revision}");
    }
}

#[test]
fn a_directory_that_is_not_a_repository_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let error = Repository::open(directory.path(), directory.path().join("w")).unwrap_err();
    assert!(matches!(error, BisectError::Git { .. }), "{error}");
}

#[test]
fn commits_are_counted_after_the_good_one_up_to_the_bad_one() {
    let lab = Lab::new(4);
    let repository = lab.open();
    let commit = |number: usize| repository.commit(&lab.hashes[number]).unwrap();
    assert_eq!(repository.count(&commit(0), &commit(3)).unwrap(), 3);
    assert_eq!(repository.count(&commit(2), &commit(3)).unwrap(), 1);
    for (good, bad) in [(3, 0), (1, 1)] {
        let error = repository.count(&commit(good), &commit(bad)).unwrap_err();
        let short = |number: usize| commit(number).short().to_owned();
        let message =
            format!("--bad {}: expected a descendant of --good {}", short(bad), short(good));
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn candidates_are_ancestors_of_the_bad_one_only_with_the_middle_first() {
    let lab = Lab::new(9);
    let repository = lab.open();
    let hashes = &lab.hashes;
    let found = repository.candidates(&hashes[8], &hashes[..1]).unwrap();
    let number = |hash: &String| hashes.iter().position(|known| known == hash).unwrap();
    let mut numbers: Vec<usize> = found.iter().map(number).collect();
    assert!(numbers[0] == 4 || numbers[0] == 5, "{numbers:?}");
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    let goods = [hashes[0].clone(), hashes[6].clone()];
    let found = repository.candidates(&hashes[8], &goods).unwrap();
    let mut numbers: Vec<usize> = found.iter().map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [7, 8]);
}

#[test]
fn a_commit_is_checked_out_apart_from_the_users_tree_and_removed_in_the_end() {
    let lab = Lab::new(3);
    fs::write(lab.tree().join("number"), "edited").unwrap();
    let repository = lab.open();
    let number = || fs::read_to_string(repository.worktree().join("number")).unwrap();
    for wanted in [0, 2, 1] {
        repository.check_out(&repository.commit(&lab.hashes[wanted]).unwrap()).unwrap();
        assert_eq!(number(), wanted.to_string());
    }
    fs::write(repository.worktree().join("number"), "made by a build").unwrap();
    repository.check_out(&repository.commit(&lab.hashes[2]).unwrap()).unwrap();
    assert_eq!(number(), "2", "what a build changed is dropped");
    let worktree = repository.worktree().to_owned();
    drop(repository);
    assert!(!worktree.exists());
    assert_eq!(fs::read_to_string(lab.tree().join("number")).unwrap(), "edited");
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}
