use numalab_host::Interrupt;
use numalab_record::study::Quantity;
use numalab_stats::Confidence;

use super::*;
use crate::bisect::git_lab::Lab;
use crate::bisect::{BisectQuestion, Build};
use crate::{
    Backend, BackendKind, Backends, Inspection, Plan, Preparation, PrepareError, Scope, parse,
};

const STUDY: &str = "name = \"s\"\nquestion = \"q?\"\n[[factor]]\nname = \"kernel\"\n\
                     levels = [\"a\", \"b\"]\n[[workload]]\nname = \"w\"\n\
                     command = [\"cat\", \"{kernel}\"]\n\
                     metric = [{ name = \"t\", better = \"lower\", exit-time = true }]\n";

/// A place in which nothing is sampled.
struct Nowhere;

impl Backend for Nowhere {
    fn describe(&self) -> String {
        "nowhere".to_owned()
    }

    fn inspect(&self, _: &Scope<'_>) -> Result<Inspection, BackendError> {
        Ok(Inspection::default())
    }

    fn prepare(self: Box<Self>, _: &Scope<'_>) -> Result<Preparation, PrepareError> {
        Err(BackendError::Interrupted.into())
    }
}

const KIND: BackendKind = BackendKind { name: "host", ..BackendKind::PLAIN };
const LAB: Backends = Backends::new(&[(&KIND, |_, _| Ok(Box::new(Nowhere)))]);

fn question(plan: &Plan, good: &str, bad: &str) -> BisectQuestion {
    BisectQuestion {
        good: good.to_owned(),
        bad: bad.to_owned(),
        build: Build::Script("/no/such/script".into()),
        treatment: plan.treatments()[0].clone(),
        workload: plan.workloads()[0].clone(),
        metric: "t".to_owned(),
        confidence: Confidence::P95,
        margin_percent: 2.0,
        most_samples: 40,
        command: vec!["numalab".to_owned(), "study".to_owned(), "bisect".to_owned()],
        version: "1".to_owned(),
    }
}

/// Runs `look` on a search from commit 0 to the last one of a repository.
fn searching<T>(commits: usize, look: impl FnOnce(&mut Bisect<'_>, &Lab) -> T) -> T {
    let lab = Lab::new(commits);
    let repository = lab.open();
    let plan = Plan::new(parse(STUDY, "s.toml", Backends::NONE).unwrap(), 5).unwrap();
    let question = question(&plan, &lab.hashes[0], "HEAD");
    let interrupt = Interrupt::never();
    let results = lab.directory.path();
    let mut bisect = Bisect::new(&plan, LAB, &question, &repository, results, &interrupt).unwrap();
    look(&mut bisect, &lab)
}

fn judged(samples: &[f64]) -> JudgedCommit {
    JudgedCommit { samples: samples.to_vec(), ..JudgedCommit::default() }
}

/// Returns the decision of a test of scores on these values, repeated cyclically, and the number of
/// values that it took.
fn decided(bisect: &mut Bisect<'_>, values: &[f64]) -> (LookResult, usize) {
    let test = bisect.bisection.state().unwrap();
    let mut taken = 0;
    let decided = bisect.decide(test, |_, nth| {
        assert_eq!(nth, taken, "one after the other");
        taken += 1;
        Ok(values[nth % values.len()])
    });
    (decided.unwrap(), taken)
}

#[test]
fn the_question_is_known_before_the_first_build() {
    searching(4, |bisect, lab| {
        let document = bisect.document();
        assert_eq!(document.good.commit.hash, lab.hashes[0]);
        assert_eq!(document.bad.commit.hash, lab.hashes[3]);
        assert_eq!((document.candidates, document.judged.len()), (3, 0));
        assert_eq!((document.study.as_str(), document.workload.as_str()), ("s", "w"));
        assert_eq!((document.treatment.as_str(), document.answer.clone()), ("kernel=a", None));
        assert_eq!(document.backend, "nowhere", "as the place describes itself");
        assert!((document.error_percent - 5.0).abs() < 1e-9);
        assert_eq!(bisect.halvings(), 2, "three candidates are one after two halvings");
    });
}

#[test]
fn a_bad_revision_that_does_not_descend_from_the_good_one_is_refused() {
    let lab = Lab::new(2);
    let repository = lab.open();
    let plan = Plan::new(parse(STUDY, "s.toml", Backends::NONE).unwrap(), 5).unwrap();
    let interrupt = Interrupt::never();
    let refused = |good: &str, bad: &str| {
        let question = question(&plan, good, bad);
        let of = Bisect::new(
            &plan,
            Backends::NONE,
            &question,
            &repository,
            lab.directory.path(),
            &interrupt,
        );
        of.map(drop).unwrap_err()
    };
    assert!(matches!(refused("HEAD", "HEAD~1"), BisectError::NotBehind { .. }));
    assert!(matches!(refused("HEAD", "HEAD"), BisectError::NotBehind { .. }));
    assert!(matches!(refused("nothing", "HEAD"), BisectError::Git { .. }));
}

#[test]
fn scores_far_from_the_middle_decide_at_once_and_those_around_it_never() {
    searching(2, |bisect, _| {
        let (bad, of_bad) = decided(bisect, &[0.48, 0.51, 0.5, 0.52]);
        assert_eq!(bad, LookResult::Decided(ThresholdSide::Above));
        let (good, of_good) = decided(bisect, &[-0.48, -0.51, -0.5, -0.52]);
        assert_eq!(good, LookResult::Decided(ThresholdSide::Below));
        assert_eq!(of_bad, of_good, "what is as clear takes as many");
        assert!(of_bad < 40, "{of_bad}");
        let (neither, all) = decided(bisect, &[-0.3, 0.3]);
        assert!(!matches!(neither, LookResult::Decided(_)), "{neither:?}");
        assert_eq!(all, 40, "the maximum number");
    });
}

#[test]
fn an_error_of_a_sample_ends_the_test_with_it() {
    searching(2, |bisect, _| {
        let test = bisect.bisection.state().unwrap();
        let error = bisect.decide(test, |_, nth| match nth {
            2 => Err(BackendError::Interrupted.into()),
            _ => Ok(1.0),
        });
        assert!(matches!(error, Err(BisectError::Backend(BackendError::Interrupted))));
    });
}

#[test]
fn a_higher_cost_and_a_lower_rate_are_worse() {
    searching(2, |bisect, _| {
        assert_eq!(bisect.cost(4.0), 4.0);
        bisect.document.quantity = Quantity::higher("rate", "1/s");
        assert_eq!(bisect.cost(4.0), 0.25);
    });
}

#[test]
fn changes_are_of_the_metric_by_the_means_of_logarithms_and_none_without_samples() {
    let good = judged(&[1.0, 100.0]);
    let twice = judged(&[20.0]);
    let percent = change_percent(&twice, &good).unwrap();
    assert!((percent - 100.0).abs() < 1e-9, "20 is twice the geometric mean of 1 and 100");
    assert!((change_percent(&good, &twice).unwrap() + 50.0).abs() < 1e-9, "a rate that falls");
    assert_eq!(change_percent(&judged(&[]), &good), None);
    assert_eq!(change_percent(&twice, &judged(&[])), None);
}

#[test]
fn the_last_commit_is_the_answer_and_of_several_one_is() {
    searching(4, |bisect, lab| {
        let one = bisect.answer(&lab.hashes[2..3]).unwrap();
        let BisectAnswer::FirstBad { commit } = one else { panic!("{one:?}") };
        assert_eq!((commit.hash, commit.subject.as_str()), (lab.hashes[2].clone(), "change 2"));
        let several = bisect.answer(&lab.hashes[1..]).unwrap();
        let BisectAnswer::OneOf { commits } = several else { panic!("{several:?}") };
        let hashes: Vec<String> = commits.into_iter().map(|commit| commit.hash).collect();
        assert_eq!(hashes, lab.hashes[1..]);
        let none = bisect.answer(&[]).unwrap();
        assert_eq!(none, BisectAnswer::OneOf { commits: Vec::new() });
    });
}

#[test]
fn the_ends_are_recorded_with_their_sides() {
    searching(2, |bisect, _| {
        let end = |samples: &[f64]| Candidate { judged: judged(samples), file: "/f".into() };
        bisect.copy_ends(&Ends { good: end(&[2.0]), bad: end(&[3.0]) });
        let (good, bad) = (&bisect.document.good, &bisect.document.bad);
        assert_eq!((&good.side, good.change_percent), (&CommitSide::Good, Some(0.0)));
        assert_eq!(bad.side, CommitSide::Bad);
        assert!((bad.change_percent.unwrap() - 50.0).abs() < 1e-9);
    });
}

#[test]
fn an_existing_sample_is_not_taken_again() {
    searching(2, |bisect, _| {
        let mut candidate = Candidate { judged: judged(&[1.0, 2.0]), file: "/no/such".into() };
        bisect.sample(&mut candidate, 1, 7).unwrap();
        assert_eq!(candidate.judged.samples, [1.0, 2.0]);
    });
}
